"""The recording stream for asyncio: the same sockets, TLS engines and notes as ``stream``, waiting in the event loop instead of a thread."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Any

import httpcore

from netdiag.probe.event_loop import readable, writable
from netdiag.probe.limits import Deadline, deadline
from netdiag.probe.stream_notes import StreamNotes, limit_of
from netdiag.probe.tls import TlsEngine, handshake_failure


class AsyncRecordingStream(httpcore.AsyncNetworkStream):
    """A connection in clear, or with one TLS session over another (an HTTPS proxy's) or over none."""

    def __init__(self, notes: StreamNotes, host: str, engines: tuple[TlsEngine, ...] = ()) -> None:
        self._notes = notes
        self._socket = notes.socket
        self._host = host
        self._engines = engines
        """Outermost (nearest to the wire) first."""
        self._write_lock = asyncio.Lock()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Some octets; empty at the end."""
        with self._notes.failures():
            data = await self._next(limit_of(timeout))
        return self._notes.came(data)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all of it."""
        at = self._notes.clock.now()
        with self._notes.failures():
            if buffer:
                await self._send(buffer, limit_of(timeout))
        self._notes.wrote(at)

    async def aclose(self) -> None:
        """Close in order, waiting shortly for the server's own close."""
        if self._notes.log.closed_at is not None:
            return
        self._notes.log.closed_at = self._notes.clock.now()
        limit = deadline(self._notes.linger_s, None)
        with contextlib.suppress(Exception):
            if self._engines:
                await self._send_raw(self._wrap(self._engines[-1].say_goodbye(), len(self._engines) - 1), limit)
        self._socket.say_goodbye()
        with contextlib.suppress(Exception):
            while self._socket.read_ready() != b"" and limit.left_s() > 0:
                await readable(self._socket, limit)
        self._socket.release()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Handshake; closes the connection when it fails."""
        name = server_hostname or self._host
        engine = TlsEngine(ssl_context, name, protocol=None)
        try:
            with self._notes.handshake(engine, name):
                await self._shake(engine, limit_of(timeout))
        except Exception:
            await self.aclose()
            raise
        return AsyncRecordingStream(self._notes.over_tls(), name, (*self._engines, engine))

    def get_extra_info(self, info: str) -> Any:
        """As ``RecordingStream.get_extra_info``."""
        if info == "is_readable":
            return self._is_readable()
        return self._notes.extra_info(info, self._engines[-1] if self._engines else None)

    async def _shake(self, engine: TlsEngine, limit: Deadline) -> None:
        try:
            while not engine.shake():
                await self._send(engine.output(), limit)
                engine.feed(await self._next(limit))
            await self._send(engine.output(), limit)
        except ssl.SSLError as error:
            with contextlib.suppress(Exception):
                await self._send(engine.output(), limit)
            raise handshake_failure(error) from error

    async def _next(self, limit: Deadline) -> bytes:
        """Plaintext as soon as there is some; empty at the end."""
        while (data := self._take()) is None:
            await readable(self._socket, limit)
            self._socket.take_stamps()
        return data

    def _take(self) -> bytes | None:
        """Plaintext that can be had without waiting; None when more has to arrive."""
        return self._take_above(len(self._engines))

    def _take_above(self, level: int) -> bytes | None:
        if level == 0:
            return self._socket.read_ready()
        engine = self._engines[level - 1]
        while (data := engine.decrypt()) is None:
            if (raw := self._take_above(level - 1)) is None:
                return None
            engine.feed(raw)
        return data

    async def _send(self, data: bytes, limit: Deadline) -> None:
        async with self._write_lock:
            await self._send_raw(self._wrap(data, len(self._engines)), limit)

    def _wrap(self, data: bytes, level: int) -> bytes:
        """Through the first ``level`` sessions, innermost first."""
        for engine in reversed(self._engines[:level]):
            data = engine.encrypt(data) if data else b""
        return data

    async def _send_raw(self, data: bytes, limit: Deadline) -> None:
        view = memoryview(data)
        while view:
            sent = self._socket.write_ready(view)
            if sent is None:
                await writable(self._socket, limit)
            else:
                view = view[sent:]

    def _is_readable(self) -> bool:
        """As ``RecordingStream``: asked about idle connections only."""
        try:
            data = self._take()
        except Exception:  # broken is as good as closed
            return True
        if data and self._engines:
            self._engines[-1].put_back(data)
        return data is not None
