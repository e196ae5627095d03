"""A connected TCP socket that keeps every write and read with the instant beside the system call and the kernel's own stamps."""

from __future__ import annotations

import contextlib
import math
import select
import selectors
import socket
import threading
from dataclasses import dataclass

from netdiag.probe import kernel
from netdiag.probe.clock import ProbeClock
from netdiag.probe.failures import read_failure
from netdiag.probe.limits import Deadline, deadline
from netdiag.records.recording import SocketOperation
from netdiag.records.tcp_info import TcpInfo

READ_BYTES = 1 << 18
WRITE_BYTES = 1 << 16
"""One write per 64 KiB, since the kernel stamps only the last octet of each."""

CLIENT, SERVER = 0, 1


@dataclass(slots=True)
class _Operation:
    direction: int
    data: bytes
    application_at: int
    kernel_at: int | None = None
    scheduled_at: int | None = None
    acknowledged_at: int | None = None
    asked_at: int | None = None

    def record(self) -> SocketOperation:
        return SocketOperation(
            direction=self.direction,
            data=self.data,
            application_at=self.application_at,
            kernel_at=self.scheduled_at if self.kernel_at is None else self.kernel_at,
            acknowledged_at=self.acknowledged_at,
            asked_at=self.asked_at,
        )


class RecordedSocket:
    """Owns a non-blocking socket. Writers and readers may be different threads; each kind must be serialised by its caller."""

    def __init__(self, sock: socket.socket, clock: ProbeClock) -> None:
        self.sock = sock
        self.tcp_info: TcpInfo | None = None
        self.at_end = False
        """The server has closed its side."""
        self._clock = clock
        self._stamped = kernel.enable(sock)
        self._operations: list[_Operation] = []
        self._asked_at: int | None = None
        """Since when somebody has been asking for octets; None when nobody is."""
        self._sent_octets = 0
        self._writes: dict[int, _Operation] = {}
        self._stamps_lock = threading.Lock()
        self._closed = False
        self._recording = True

    def stop_recording(self) -> None:
        """From now on a plain socket; what was recorded is forgotten."""
        self._recording = False
        self._operations.clear()
        self._writes.clear()

    def latest_tcp_info(self) -> TcpInfo | None:
        """As of the close, or as of now while it is open."""
        return self.tcp_info if self._closed else kernel.tcp_info(self.sock)

    def operations(self) -> tuple[SocketOperation, ...]:
        """Everything so far, in the order of the system calls."""
        return tuple(operation.record() for operation in list(self._operations))

    def write(self, data: bytes, limit: Deadline) -> int:
        """Send all of it; the instant just before the first call. Raises a time-out or a reset as httpcore's exceptions."""
        first_at, view = 0, memoryview(data)
        while view:
            at = self._clock.now()
            sent = self.write_ready(view)
            if sent is None:
                self._wait_writable(limit)
                continue
            first_at, view = first_at or at, view[sent:]
        return first_at or self._clock.now()

    def write_ready(self, view: memoryview) -> int | None:
        """Send some octets without waiting; how many, or None when the send buffer is full."""
        piece = view[:WRITE_BYTES]
        at = self._clock.now()
        try:
            sent = self.sock.send(piece)
        except BlockingIOError:
            return None
        except OSError as error:
            raise read_failure(error) from error
        self._keep_write(bytes(piece[:sent]), at)
        return sent

    def read(self, limit: Deadline) -> bytes:
        """What has arrived, waiting for it if need be; empty at the end of the stream."""
        while True:
            data = self.read_ready()
            if data is not None:
                return data
            self._wait_readable(limit)

    def read_ready(self) -> bytes | None:
        """What has arrived, without waiting; None when nothing has."""
        if self.at_end:
            return b""
        if self._asked_at is None:
            self._asked_at = self._clock.now()
        try:
            data, kernel_at = kernel.receive(self.sock, READ_BYTES, stamped=self._stamped)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError as error:
            raise read_failure(error) from error
        at = self._clock.now()
        self.at_end = not data
        if data and self._recording:
            self._operations.append(_Operation(SERVER, data, at, kernel_at, asked_at=self._asked_at))
        self._asked_at = None
        return data

    def is_readable(self) -> bool:
        """Whether octets or the end of the stream wait to be read (queued transmit stamps do not count)."""
        self.take_stamps()
        return self.at_end or _poll(self.sock, selectors.EVENT_READ, 0.0)

    def close(self, *, linger_s: float) -> int:
        """Say goodbye, give the server ``linger_s`` to do the same, take the last stamps, close. Returns when the goodbye was said."""
        at = self.say_goodbye()
        if at is None:
            return self._clock.now()
        if linger_s > 0:
            self._linger(deadline(linger_s, None))
        self.release()
        return at

    def say_goodbye(self) -> int | None:
        """TCP_INFO, then FIN. When that was; None when it has been done before."""
        if self._closed:
            return None
        self._closed = True
        self.tcp_info = kernel.tcp_info(self.sock)
        at = self._clock.now()
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)
        return at

    def release(self) -> None:
        """Take the last stamps and close the descriptor."""
        self.take_stamps()
        self.sock.close()

    def _linger(self, limit: Deadline) -> None:
        """Unread octets would turn the FIN into a RST (RFC 9293 section 3.6.1), so read to the end, within reason."""
        with contextlib.suppress(Exception):
            while self.read(limit):
                pass

    def _keep_write(self, data: bytes, at: int) -> None:
        self._sent_octets += len(data)
        if not self._recording:
            return
        operation = _Operation(CLIENT, data, at)
        if self._stamped:
            self._writes[(self._sent_octets - 1) & 0xFFFFFFFF] = operation
        self._operations.append(operation)

    def take_stamps(self) -> None:
        """Move the kernel's queued transmit stamps to their writes. Whoever polls the socket must do this when nothing else is ready."""
        if not self._stamped or not self._stamps_lock.acquire(blocking=False):
            return
        try:
            for stamp in kernel.drain(self.sock):
                self._apply(stamp)
        finally:
            self._stamps_lock.release()

    def _apply(self, stamp: kernel.TransmitStamp) -> None:
        operation = self._writes.get(stamp.octet)
        if operation is None:
            return
        if stamp.kind == "sent":
            operation.kernel_at = (
                operation.kernel_at or stamp.at
            )  # a retransmission is stamped again: the first one counts
        elif stamp.kind == "sched":
            operation.scheduled_at = operation.scheduled_at or stamp.at
        else:
            operation.acknowledged_at = stamp.at
            del self._writes[stamp.octet]

    def _wait_readable(self, limit: Deadline) -> None:
        while not _poll(self.sock, selectors.EVENT_READ, limit.left_s()):
            self.take_stamps()
            if limit.left_s() <= 0:
                raise limit.read_failure()

    def _wait_writable(self, limit: Deadline) -> None:
        while not _poll(self.sock, selectors.EVENT_WRITE, limit.left_s()):
            self.take_stamps()
            if limit.left_s() <= 0:
                raise limit.write_failure()


_LONGEST_POLL_S = 3_600.0


def _poll(sock: socket.socket, event: int, timeout_s: float) -> bool:
    """Whether the socket is ready. A queued transmit stamp raises POLLERR alone: that is not readiness, and returns False at once."""
    timeout_s = _LONGEST_POLL_S if math.isinf(timeout_s) else timeout_s
    if not hasattr(select, "poll"):  # Windows
        reading = [sock] if event == selectors.EVENT_READ else []
        writing = [sock] if event == selectors.EVENT_WRITE else []
        return any(select.select(reading, writing, writing, timeout_s))
    wanted = select.POLLIN if event == selectors.EVENT_READ else select.POLLOUT
    poll = select.poll()
    poll.register(sock, wanted)
    return any(seen & (wanted | select.POLLHUP | select.POLLNVAL) for _, seen in poll.poll(timeout_s * 1_000))
