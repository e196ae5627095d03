"""One accepted TCP connection of the lab server, clear or under TLS, with a stamp beside every system call.

TLS runs over memory buffers and the socket is used directly, so that the server decides when each flight leaves, how large each record is
and at which octet a response breaks off.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import time
from collections import deque
from dataclasses import dataclass
from typing import Protocol

_SO_TIMESTAMPNS = 35
"""Linux: the kernel's arrival stamp (wall clock) comes with each recvmsg. Python does not name it."""
_TIMESPEC = struct.Struct("@ll")
_RECEIVE_BYTES = 1 << 18
_HELD_BYTES = 1 << 20
"""Received and not yet used: reading pauses above this, so the peer meets a closed window."""
_TCP_INFO_BYTES = 104
_TCP_INFO_FIELDS = (24, 68, 80, 100)
"""Of linux/tcp.h: tcpi_unacked, tcpi_rtt, tcpi_snd_cwnd, tcpi_total_retrans."""
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class PeerGone(ConnectionError):
    """The peer reset the connection, or closed it while octets were still to be written."""


@dataclass(frozen=True, slots=True)
class Received:
    """Application octets and when they came in."""

    data: bytes
    at: int
    """Kernel arrival stamp of the last segment read, or the return of the read where there is none."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A write."""

    at: int
    """Just before the first ``send``."""
    done_at: int
    """Just after the kernel took the last octet."""
    wire_bytes: int
    """TCP payload octets, TLS overhead included."""
    offset: int = 0
    """Of the first of them in this direction's TCP stream: where a capture has them."""

    @property
    def end_offset(self) -> int:
        """Just after the last of them."""
        return self.offset + self.wire_bytes


def place(sent: Sent) -> dict[str, int]:
    """For a truth row: when the kernel had the octets, and where they lie in this side's TCP stream."""
    return {"sent_at": sent.done_at, "offset": sent.offset, "wire_bytes": sent.wire_bytes}


def joined(sent: list[Sent]) -> Sent:
    """Several writes as one: from the first's beginning to the last's end (other streams' octets may lie between)."""
    first, last = sent[0], sent[-1]
    return Sent(first.at, last.done_at, last.end_offset - first.offset, first.offset)


class Connection(Protocol):
    """What the HTTP conversations need of the connection below them: a real one (``Link``), or one in a capture that is being written."""

    last_sent: Sent

    async def receive(self) -> Received | None:
        """Application octets; None when the peer has ended its side. Raises PeerGone on a reset."""

    async def send(self, data: bytes) -> Sent:
        """Write application octets at once. Raises PeerGone."""

    async def send_raw(self, data: bytes) -> Sent:
        """Write octets below TLS, as they are. Raises PeerGone."""

    def sealed(self, data: bytes) -> bytes:
        """The octets that ``send`` would write, without writing them."""

    def end(self, *, notify: bool = True) -> int:
        """End this side in order (close_notify when ``notify``, FIN); returns when."""

    def reset(self) -> int:
        """Abort with RST; returns when."""

    async def linger(self, seconds: float = 1.0) -> None:
        """Wait for the peer's end, then let go."""

    def tcp_facts(self) -> dict[str, int]:
        """The sender's state: ``unacked``, ``cwnd``, ``retransmits`` (all so far); empty where it is not known."""


def stamp_arrivals(listener: socket.socket) -> None:
    """Ask the kernel for arrival stamps on every connection accepted from here (inherited by accept); no effect where unknown."""
    with contextlib.suppress(OSError):
        listener.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)


class Link:
    """Reads and writes of one connection. All methods belong to the loop's thread."""

    def __init__(self, sock: socket.socket, *, nodelay: bool = True, record_bytes: int | None = None) -> None:
        """``record_bytes``: largest TLS record content to write (RFC 8446 section 5.1 allows 16384)."""
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(nodelay))
        self.socket = sock
        self.opened_at = time.time_ns()
        self.last_sent = Sent(self.opened_at, self.opened_at, 0)
        self.reset_by_peer = False
        self.ended_by_peer = False
        self._record_bytes = record_bytes or 1 << 14
        self._loop = asyncio.get_running_loop()
        self._arrived: deque[Received] = deque()
        self._held_bytes = 0
        self._written_bytes = 0
        self._last_arrival_at = self.opened_at
        self._news = asyncio.Event()
        self._write_lock = asyncio.Lock()
        self._tls: ssl.SSLObject | None = None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._reading = False
        self._resume_reading()

    # --- receiving -------------------------------------------------------------------------------------------------

    async def receive_raw(self) -> Received | None:
        """Octets as they came from the socket; None at the end of the stream. Raises PeerGone on a reset."""
        while not self._arrived:
            if self.reset_by_peer:
                raise PeerGone("reset by peer")
            if self.ended_by_peer:
                return None
            self._news.clear()
            await self._news.wait()
        received = self._arrived.popleft()
        self._last_arrival_at = received.at
        self._held_bytes -= len(received.data)
        if not self._reading and self._held_bytes < _HELD_BYTES and not self.ended_by_peer:
            self._resume_reading()
        return received

    async def receive(self) -> Received | None:
        """Application octets (decrypted under TLS); None when the peer has ended its side."""
        if self._tls is None:
            return await self.receive_raw()
        at = self._last_arrival_at
        while True:
            # The last octets of the handshake may have brought application data along: decrypt first, then wait.
            plain, ended = self._decrypt()
            if self._outgoing.pending:
                await self._flush()
            if plain:
                return Received(plain, at)
            received = None if ended else await self.receive_raw()
            if received is None:
                return None
            at = received.at
            self._incoming.write(received.data)

    def _decrypt(self) -> tuple[bytes, bool]:
        assert self._tls is not None
        parts = []
        try:
            while part := self._tls.read(_RECEIVE_BYTES):
                parts.append(part)
        except ssl.SSLWantReadError:
            return b"".join(parts), False
        except ssl.SSLZeroReturnError:
            pass
        return b"".join(parts), True

    def _on_readable(self) -> None:
        try:
            data, ancillary, _, _ = self.socket.recvmsg(_RECEIVE_BYTES, 64)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.reset_by_peer = True
            data, ancillary = b"", []
        if data:
            self._arrived.append(Received(data, _arrival(ancillary) or time.time_ns()))
            self._held_bytes += len(data)
        else:
            self.ended_by_peer = True
        if not data or self._held_bytes >= _HELD_BYTES:
            self._pause_reading()
        self._news.set()

    def _resume_reading(self) -> None:
        self._reading = True
        self._loop.add_reader(self.socket, self._on_readable)

    def _pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self.socket)

    # --- sending ---------------------------------------------------------------------------------------------------

    async def send(self, data: bytes) -> Sent:
        """Write application octets at once; returns when the kernel has them all. Raises PeerGone when it cannot."""
        async with self._write_lock:
            if self._tls is None:
                return await self._send_raw(data)
            self._encrypt(data)
            return await self._send_raw(self._outgoing.read())

    async def send_raw(self, data: bytes) -> Sent:
        """Write octets below TLS, as they are."""
        async with self._write_lock:
            return await self._send_raw(data)

    def sealed(self, data: bytes) -> bytes:
        """The octets that ``send`` would write, without writing them: to break a record in the middle."""
        if self._tls is None:
            return data
        self._encrypt(data)
        return self._outgoing.read()

    def _encrypt(self, data: bytes) -> None:
        assert self._tls is not None
        for start in range(0, len(data), self._record_bytes):
            self._tls.write(data[start : start + self._record_bytes])

    async def _flush(self) -> Sent:
        async with self._write_lock:
            return await self._send_raw(self._outgoing.read())

    async def _send_raw(self, data: bytes) -> Sent:
        started_at = time.time_ns()
        view = memoryview(data)
        while view:
            try:
                view = view[self.socket.send(view) :]
            except (BlockingIOError, InterruptedError):
                await self._writable()
            except OSError as error:
                raise PeerGone(str(error)) from error
        self.last_sent = Sent(started_at, time.time_ns(), len(data), self._written_bytes)
        self._written_bytes += len(data)
        return self.last_sent

    async def _writable(self) -> None:
        free: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_writer(self.socket, _resolve, free)
        try:
            await free
        finally:
            self._loop.remove_writer(self.socket)

    # --- TLS and the end -------------------------------------------------------------------------------------------

    def start_tls(self, context: ssl.SSLContext) -> ssl.SSLObject:
        """Put a TLS server over this connection; ``handshake`` then drives it."""
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        return self._tls

    @property
    def tls(self) -> ssl.SSLObject | None:
        """The TLS session, if there is one."""
        return self._tls

    def handshake_step(self, data: bytes) -> tuple[bytes, bool]:
        """Feed received octets to the handshake: what to send now, and whether it is complete. Raises ssl.SSLError."""
        assert self._tls is not None
        self._incoming.write(data)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return self._outgoing.read(), False
        except ssl.SSLError as error:
            error.alert = self._outgoing.read()  # type: ignore[attr-defined]
            raise
        return self._outgoing.read(), True

    def end(self, *, notify: bool = True) -> int:
        """Send close_notify (where it still fits in the socket buffer) and FIN; returns when. ``linger`` should follow."""
        if self._tls is not None and notify and not self.reset_by_peer:
            with contextlib.suppress(ssl.SSLError, OSError, ValueError):
                self._tls.unwrap()
            with contextlib.suppress(OSError):
                self.socket.send(self._outgoing.read())
        at = time.time_ns()
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
        return at

    async def linger(self, seconds: float = 1.0) -> None:
        """Read until the peer has ended too, then close: closing with octets unread would reset what we have just sent (RFC 9112 section 9.6)."""
        with contextlib.suppress(TimeoutError, PeerGone):
            async with asyncio.timeout(seconds):
                while await self.receive_raw() is not None:
                    pass
        self._detach()

    def reset(self) -> int:
        """Abort: RST instead of FIN (RFC 9293 section 3.10.5); returns when."""
        with contextlib.suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        at = time.time_ns()
        self._detach()
        return at

    def tcp_facts(self) -> dict[str, int]:
        """From TCP_INFO (Linux): segments not acknowledged, congestion window in segments, segments sent again, round trip in ns."""
        try:
            info = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
        except (OSError, AttributeError):
            return {}
        if len(info) < _TCP_INFO_BYTES:
            return {}
        unacked, rtt_us, cwnd, again = (struct.unpack_from("=I", info, at)[0] for at in _TCP_INFO_FIELDS)
        return {"unacked": unacked, "rtt_ns": rtt_us * 1000, "cwnd": cwnd, "retransmits": again}

    def _detach(self) -> None:
        self._pause_reading()
        self.socket.close()


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _arrival(ancillary: list[tuple[int, int, bytes]]) -> int | None:
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(data) >= _TIMESPEC.size:
            seconds, nanoseconds = _TIMESPEC.unpack_from(data)
            return int(seconds * 1_000_000_000 + nanoseconds) or None
    return None
