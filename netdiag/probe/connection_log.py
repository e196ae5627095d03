"""What the probe notes about one connection while it lives; becomes a ``ClientConnection`` at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from netdiag.probe.clock import ProbeClock
from netdiag.probe.recorded_socket import RecordedSocket
from netdiag.records.call import AddressAttempt
from netdiag.records.endpoint import Endpoint
from netdiag.records.recording import ClientConnection, Span


@dataclass(slots=True)
class ConnectionLog:
    """Mutable twin of ``ClientConnection``."""

    id: int
    opened_at: int
    client: Endpoint | None = None
    server: Endpoint | None = None
    resolve: Span | None = None
    resolved_by: str | None = None
    addresses: tuple[str, ...] = ()
    attempts: tuple[AddressAttempt, ...] = ()
    tcp: Span | None = None
    tls: Span | None = None
    sni: str | None = None
    tls_version: str | None = None
    cipher_suite: str | None = None
    alpn: str | None = None
    resumed: bool | None = None
    tls_error: str | None = None
    proxy: Span | None = None
    socket: RecordedSocket | None = None
    closed_at: int | None = None
    error: str | None = None
    requests: int = 0
    """Requests that have begun to write on it."""
    listeners: dict[int | None, Callable[[int, int], None]] = field(default_factory=dict)
    """Stream id (None: HTTP/1.1) to who wants to know of an interim response's (status, instant)."""

    def interim(self, stream_id: int | None, status: int, at: int) -> None:
        """An interim response has arrived."""
        if (listener := self.listeners.get(stream_id)) is not None:
            listener(status, at)

    def record(self) -> ClientConnection:
        """Frozen, with every operation so far."""
        return ClientConnection(
            id=self.id,
            client=self.client,
            server=self.server,
            resolve=self.resolve,
            resolved_by=self.resolved_by,
            addresses=self.addresses,
            attempts=self.attempts,
            tcp=self.tcp,
            tls=self.tls,
            sni=self.sni,
            tls_version=self.tls_version,
            cipher_suite=self.cipher_suite,
            alpn=self.alpn,
            resumed=self.resumed,
            tls_error=self.tls_error,
            proxy=self.proxy,
            operations=() if self.socket is None else self.socket.operations(),
            tcp_info=None if self.socket is None else self.socket.latest_tcp_info(),
            closed_at=self.closed_at,
            error=self.error,
        )


class Recorder:
    """All connections of one probe, numbered in the order of their first attempt."""

    def __init__(self, clock: ProbeClock) -> None:
        self.clock = clock
        self.connections: list[ConnectionLog] = []
        self._lock = threading.Lock()

    def new_connection(self) -> ConnectionLog:
        """A log with the next number."""
        with self._lock:
            log = ConnectionLog(id=len(self.connections), opened_at=self.clock.now())
            self.connections.append(log)
        return log

    def stop(self) -> None:
        """Keep nothing more of connections that live on (an application's)."""
        for log in list(self.connections):
            if log.socket is not None:
                log.socket.stop_recording()

    def records(self) -> tuple[ClientConnection, ...]:
        """Every connection so far, frozen."""
        return tuple(log.record() for log in list(self.connections))
