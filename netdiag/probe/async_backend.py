"""The recording backend for asyncio: the same sockets, TLS engine and logs as ``backend.py``, waiting in the event loop instead of a thread."""

from __future__ import annotations

import asyncio
import contextlib
import math
import ssl
from collections.abc import Callable, Iterable
from typing import Any

import httpcore

from netdiag.probe import tracker
from netdiag.probe.backend import (
    LINGER_S,
    RecordingBackend,
    RecordingStream,
    as_tls_failure,
    note_session,
)
from netdiag.probe.connection_log import ConnectionLog
from netdiag.probe.failures import reason_of
from netdiag.probe.interim import tap_for
from netdiag.probe.limits import Deadline, deadline
from netdiag.probe.recorded_socket import RecordedSocket
from netdiag.probe.tls import TlsEngine, handshake_failure
from netdiag.records.recording import Span


class AsyncRecordingBackend(httpcore.AsyncNetworkBackend):
    """Resolves and connects in a thread (name resolution blocks anyway), reads and writes in the loop. asyncio only."""

    def __init__(self, inner: RecordingBackend) -> None:
        self.inner = inner

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """As ``RecordingBackend.connect_tcp``."""
        stream = await asyncio.to_thread(self.inner.connect_tcp, host, port, timeout, local_address, socket_options)
        assert isinstance(stream, RecordingStream)
        return AsyncRecordingStream(self.inner, stream.log, stream.recorded, host)

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Unix sockets have no network path to measure."""
        raise httpcore.UnsupportedProtocol("a recording goes over TCP")

    async def sleep(self, seconds: float) -> None:
        """httpcore's retries."""
        await asyncio.sleep(seconds)


class AsyncRecordingStream(httpcore.AsyncNetworkStream):
    """A connection in clear, or with one TLS session over another (an HTTPS proxy's) or over none."""

    def __init__(
        self,
        backend: RecordingBackend,
        log: ConnectionLog,
        sock: RecordedSocket,
        host: str,
        engines: tuple[TlsEngine, ...] = (),
    ) -> None:
        self._backend = backend
        self._log = log
        self._socket = sock
        self._host = host
        self._engines = engines
        """Outermost (nearest to the wire) first."""
        self._tap = tap_for(log.alpn, backend.protocol)
        self._write_lock = asyncio.Lock()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Some octets; empty at the end."""
        limit = _limit(timeout)
        with self._noting_failures():
            while (data := self._take()) is None:
                await self._arrival(limit)
        for stream_id, status in self._tap.feed(data):
            self._log.interim(stream_id, status, self._backend.recorder.clock.now())
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all of it."""
        limit, at = _limit(timeout), self._backend.recorder.clock.now()
        with self._noting_failures():
            if buffer:
                await self._send(buffer, limit)
        request = tracker.current.get()
        if request is not None:
            request.wrote(self._log, at)

    async def aclose(self) -> None:
        """Close in order, waiting shortly for the server's own close."""
        if self._log.closed_at is not None:
            return
        self._log.closed_at = self._backend.recorder.clock.now()
        limit = deadline(0.0 if self._log.error else LINGER_S, None)
        with contextlib.suppress(Exception):
            if self._engines:
                await self._send_raw(self._wrap(self._engines[-1].say_goodbye(), len(self._engines) - 1), limit)
        self._socket.say_goodbye()
        with contextlib.suppress(Exception):
            while self._socket.read_ready() != b"" and limit.left_s() > 0:
                await self._readable(limit)
        self._socket.release()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Handshake; closes the connection when it fails."""
        name = server_hostname or self._host
        engine = TlsEngine(ssl_context, name, protocol=None)
        started_at = self._backend.recorder.clock.now()
        try:
            await self._shake(engine, _limit(timeout))
            note_session(self._log, engine, name, None)
        except Exception as error:
            failed = as_tls_failure(error)
            self._log.tls_error = self._log.error = reason_of(failed)
            await self.aclose()
            raise failed from error
        finally:
            self._log.tls = Span(started_at=started_at, ended_at=self._backend.recorder.clock.now())
        return AsyncRecordingStream(self._backend, self._log, self._socket, name, (*self._engines, engine))

    def get_extra_info(self, info: str) -> Any:
        """As ``RecordingStream.get_extra_info``."""
        if info == "ssl_object":
            return self._engines[-1].object if self._engines else None
        if info == "client_addr":
            return self._socket.sock.getsockname()
        if info == "server_addr":
            return self._socket.sock.getpeername()
        if info == "socket":
            return self._socket.sock
        if info == "is_readable":
            return self._is_readable()
        return self._log if info == "connection_log" else None

    async def _shake(self, engine: TlsEngine, limit: Deadline) -> None:
        try:
            while not engine.shake():
                await self._send(engine.output(), limit)
                while (raw := self._take()) is None:
                    await self._arrival(limit)
                engine.feed(raw)
            await self._send(engine.output(), limit)
        except ssl.SSLError as error:
            with contextlib.suppress(Exception):
                await self._send(engine.output(), limit)
            raise handshake_failure(error) from error

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
                await self._writable(limit)
            else:
                view = view[sent:]

    async def _arrival(self, limit: Deadline) -> None:
        await self._readable(limit)
        self._socket.take_stamps()

    async def _readable(self, limit: Deadline) -> None:
        loop = asyncio.get_running_loop()
        if not await _event(loop.add_reader, loop.remove_reader, self._socket, limit):
            raise limit.read_failure()

    async def _writable(self, limit: Deadline) -> None:
        loop = asyncio.get_running_loop()
        if not await _event(loop.add_writer, loop.remove_writer, self._socket, limit):
            raise limit.write_failure()

    def _is_readable(self) -> bool:
        try:
            data = self._take()
        except Exception:  # broken is as good as closed
            return True
        if data and self._engines:
            self._engines[-1].put_back(data)
        return data is not None

    @contextlib.contextmanager
    def _noting_failures(self) -> Any:
        try:
            yield
        except Exception as error:
            self._log.error = reason_of(error)
            request = tracker.current.get()
            if request is not None:
                request.ended_at = request.ended_at or self._backend.recorder.clock.now()
            raise


async def _event(add: Callable[..., None], remove: Callable[[Any], Any], sock: RecordedSocket, limit: Deadline) -> bool:
    """Wait until the loop calls the socket ready (which queued stamps make it, too). False when the time is over."""
    ready = asyncio.get_running_loop().create_future()

    def set_ready() -> None:
        sock.take_stamps()
        if not ready.done():
            ready.set_result(None)

    add(sock.sock, set_ready)
    try:
        async with asyncio.timeout(None if math.isinf(limit.at_s) else limit.left_s()):
            await ready
    except TimeoutError:
        return False
    finally:
        remove(sock.sock)
    return True


def _limit(timeout: float | None) -> Deadline:
    request = tracker.current.get()
    return deadline(timeout, None if request is None else request.total_at_s)
