"""What a stream tells the logs, whether a thread waits for its octets or an event loop: ``stream`` and ``async_stream`` do the waiting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpcore

from netdiag.probe import tracker
from netdiag.probe.clock import ProbeClock
from netdiag.probe.connection_log import ConnectionLog
from netdiag.probe.failures import ProtocolNotOffered, TlsFailed, TlsHandshakeTimedOut, TotalTimedOut, reason_of
from netdiag.probe.interim import tap_for
from netdiag.probe.limits import Deadline, deadline
from netdiag.probe.permitted import is_address
from netdiag.probe.recorded_socket import RecordedSocket
from netdiag.probe.tls import TlsEngine, suite_name
from netdiag.records.recording import Span

LINGER_S = 0.25
"""Longest wait at a close for the server's own close."""


class StreamNotes:
    """One connection's log, kept by the stream on it. ``protocol`` is what the arm speaks; None: whatever was negotiated."""

    def __init__(self, clock: ProbeClock, log: ConnectionLog, sock: RecordedSocket, protocol: str | None) -> None:
        self.log = log
        self.clock = clock
        self.socket = sock
        self.protocol = protocol
        self._tap = tap_for(log.alpn, protocol)

    def over_tls(self) -> StreamNotes:
        """For the stream that a handshake made: what it speaks is known now."""
        return StreamNotes(self.clock, self.log, self.socket, self.protocol)

    def came(self, data: bytes) -> bytes:
        """Octets for httpcore; interim responses among them have arrived now."""
        for stream_id, status in self._tap.feed(data):
            self.log.interim(stream_id, status, self.clock.now())
        return data

    def wrote(self, at: int) -> None:
        """Octets were sent. None at all still tell whose request it is: on HTTP/2 another thread may have sent its frames."""
        request = tracker.current.get()
        if request is not None:
            request.wrote(self.log, at)

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Notes what breaks inside the block at once: httpcore's own tidying up takes time that is not the request's."""
        try:
            yield
        except Exception as error:
            self.log.error = reason_of(error)
            request = tracker.current.get()
            if request is not None:
                request.ended_at = request.ended_at or self.clock.now()
            raise

    @contextmanager
    def handshake(self, engine: TlsEngine, name: str) -> Iterator[None]:
        """A TLS handshake inside the block: its span, and what was negotiated or why it failed, as one of ``failures``."""
        started_at = self.clock.now()
        try:
            yield
            note_session(self.log, engine, name, self.protocol)
        except Exception as error:
            failed = _as_tls_failure(error)
            self.log.tls_error = self.log.error = reason_of(failed)
            raise failed from error
        finally:
            self.log.tls = Span(started_at=started_at, ended_at=self.clock.now())

    @property
    def linger_s(self) -> float:
        """How long a close may wait for the server's own: not at all for a broken connection."""
        return 0.0 if self.log.error else LINGER_S

    def extra_info(self, info: str, engine: TlsEngine | None) -> Any:
        """httpcore's names for what needs no waiting, and ``connection_log``; None for all others."""
        if info == "ssl_object":
            return None if engine is None else engine.object
        if info == "client_addr":
            return self.socket.sock.getsockname()
        if info == "server_addr":
            return self.socket.sock.getpeername()
        if info == "socket":
            return self.socket.sock
        return self.log if info == "connection_log" else None


def limit_of(timeout: float | None) -> Deadline:
    """An operation's own limit, or that of the request which it is for."""
    request = tracker.current.get()
    return deadline(timeout, None) if request is None else deadline(timeout, request.total_at_s, request.first_at_s)


def note_session(log: ConnectionLog, engine: TlsEngine, name: str, wanted: str | None) -> None:
    """What was negotiated. Raises ``ProtocolNotOffered`` when h2 was wanted and is not it."""
    session = engine.object
    log.sni = None if is_address(name) else name
    log.tls_version = session.version()
    cipher = session.cipher()
    log.cipher_suite = None if cipher is None else suite_name(session.context, cipher[0])
    log.alpn = session.selected_alpn_protocol()
    log.resumed = session.session_reused
    if wanted == "h2" and engine.protocol == "h2" and log.alpn != "h2":
        raise ProtocolNotOffered(f"the server chose {log.alpn or 'no protocol'} instead of h2")


def _as_tls_failure(error: Exception) -> Exception:
    """Whatever ended a handshake, as the failure that the records show."""
    if isinstance(error, (TlsFailed, TotalTimedOut)):
        return error
    if isinstance(error, httpcore.TimeoutException):
        return TlsHandshakeTimedOut(f"TLS handshake: {reason_of(error)}")
    return TlsFailed(f"the connection broke during the TLS handshake: {reason_of(error)}")
