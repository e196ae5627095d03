"""The recording network backend for httpcore: it owns name resolution, the race of addresses, TLS, and every write and read.

A newcomer starts here: httpcore calls ``connect_tcp``, then ``start_tls``, then ``write`` and ``read``; each leaves its instants in a
``ConnectionLog`` and, where it belongs to a request, in that request's ``RequestTracker``.
"""

from __future__ import annotations

import contextlib
import ipaddress
import ssl
import time
from collections.abc import Iterable
from typing import Any

import httpcore

from netdiag.probe import tracker
from netdiag.probe.connection_log import ConnectionLog, Recorder
from netdiag.probe.eyeballs import Race, race
from netdiag.probe.failures import (
    ConnectTimedOut,
    ProtocolNotOffered,
    ResolveFailed,
    TlsFailed,
    TotalTimedOut,
    Unreachable,
    connect_failure,
    reason_of,
)
from netdiag.probe.interim import tap_for
from netdiag.probe.limits import Deadline, deadline
from netdiag.probe.recorded_socket import RecordedSocket
from netdiag.probe.resolver import Resolver
from netdiag.probe.tls import ALPN, Layer, TlsEngine, TlsLayer, suite_name
from netdiag.records.endpoint import Endpoint
from netdiag.records.recording import Span

LINGER_S = 0.25
"""Longest wait at a close for the server's own close."""
_DEFAULT_CONNECT_S = 30.0


class SessionCache:
    """The last TLS session of each host, for arms that resume (RFC 8446 section 2.2)."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[str, int], ssl.SSLSession] = {}

    def get(self, host: str, port: int) -> ssl.SSLSession | None:
        """The session to offer; None the first time."""
        return self._sessions.get((host, port))

    def keep(self, host: str, port: int, session: ssl.SSLSession | None) -> None:
        """Remember a session that has a ticket."""
        if session is not None and session.has_ticket:
            self._sessions[host, port] = session


class RecordingBackend(httpcore.NetworkBackend):
    """One per arm: ``protocol`` is the one ALPN name offered to targets (None: what the context offers); ``sessions`` makes the arm resume."""

    def __init__(
        self,
        recorder: Recorder,
        resolver: Resolver,
        *,
        protocol: str | None,
        family: str | None = None,
        tls_timeout_s: float | None = None,
        sessions: SessionCache | None = None,
        proxy_context: ssl.SSLContext | None = None,
        allow_link_local: bool = False,
    ) -> None:
        self.recorder = recorder
        self.resolver = resolver
        self.protocol = protocol
        self.family = family
        self.tls_timeout_s = tls_timeout_s
        self.sessions = sessions
        self.allow_link_local = allow_link_local
        self.proxy_context = proxy_context
        """TLS towards an HTTPS proxy is told apart by its context: HTTP/1.1 is offered there, and no key leads to content."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Resolve, race, connect. Raises the exceptions of ``failures``."""
        log = self.recorder.new_connection()
        request = tracker.current.get()
        if request is not None:
            request.opened(log)
        limit = deadline(timeout, None if request is None else request.total_at_s)
        try:
            addresses = self._resolve(log, host, port, limit)
            won = self._race(log, addresses, port, limit, local_address, host)
        except Exception as error:
            log.error = reason_of(error)
            raise
        return RecordingStream(self, log, won, host=host, port=port)

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        """Unix sockets have no network path to measure."""
        raise httpcore.UnsupportedProtocol("a probe goes over TCP")

    def sleep(self, seconds: float) -> None:
        """httpcore's own retries are off; this keeps its contract."""
        time.sleep(seconds)

    def _resolve(self, log: ConnectionLog, host: str, port: int, limit: Deadline) -> tuple[str, ...]:
        try:
            resolved = self.resolver.resolve(host, port, timeout_s=min(limit.left_s(), _DEFAULT_CONNECT_S))
        except ResolveFailed as error:
            log.resolve = error.span
            raise
        log.resolve, log.addresses, log.resolved_by = resolved.span, resolved.addresses, resolved.source
        chosen = tuple(a for a in resolved.addresses if self.family in (None, "ipv6" if ":" in a else "ipv4"))
        if not chosen:
            raise Unreachable(f"{host} has no {self.family} address")
        for address in () if self.allow_link_local else chosen:
            if is_off_limits(address):
                raise Unreachable(
                    f"{address} is a link-local or cloud-metadata address, which needs a permission of its own"
                )
        return chosen

    def _race(
        self,
        log: ConnectionLog,
        addresses: tuple[str, ...],
        port: int,
        limit: Deadline,
        local_address: str | None,
        host: str,
    ) -> RecordedSocket:
        timeout_s = min(limit.left_s(), _DEFAULT_CONNECT_S)
        result = race(addresses, port, clock=self.recorder.clock, timeout_s=timeout_s, local_address=local_address)
        log.attempts = tuple(result.attempts)
        if result.winner is None or result.won is None:
            raise connect_failure([a.outcome for a in result.attempts], f"{host} port {port}")
        return _adopt(log, result, self.recorder)


def _adopt(log: ConnectionLog, result: Race, recorder: Recorder) -> RecordedSocket:
    assert result.winner is not None
    assert result.won is not None
    sock = RecordedSocket(result.winner, recorder.clock)
    log.tcp = Span(started_at=result.won.started_at, ended_at=result.won.ended_at)
    with contextlib.suppress(OSError):  # reset by now: the next read says so
        log.client = _endpoint(result.winner.getsockname())
    log.server = Endpoint(address=str(ipaddress.ip_address(result.won.address)), port=result.won.port)
    log.socket = sock
    return sock


def _endpoint(name: tuple[Any, ...]) -> Endpoint:
    return Endpoint(address=str(ipaddress.ip_address(str(name[0]).partition("%")[0])), port=int(name[1]))


class RecordingStream(httpcore.NetworkStream):
    """A connection in clear, or one TLS session on it."""

    def __init__(
        self,
        backend: RecordingBackend,
        log: ConnectionLog,
        sock: RecordedSocket,
        *,
        host: str,
        port: int,
        tls: TlsLayer | None = None,
    ) -> None:
        self._backend = backend
        self._log = log
        self._socket = sock
        self._host, self._port = host, port
        self._tls = tls
        self._tap = tap_for(log.alpn, backend.protocol)

    @property
    def recorded(self) -> RecordedSocket:
        """The socket below."""
        return self._socket

    @property
    def log(self) -> ConnectionLog:
        """What is known about the connection."""
        return self._log

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Some octets, which may be more than asked for: httpcore does not mind, and nothing waits in a buffer of ours."""
        try:
            data = self._top().read(_limit(timeout))
        except Exception as error:
            self._broke(error)
            raise
        for stream_id, status in self._tap.feed(data):
            self._log.interim(stream_id, status, self._backend.recorder.clock.now())
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all of it. An empty write still tells whose request it is: on HTTP/2 another thread may have sent its frames."""
        try:
            at = self._top().write(buffer, _limit(timeout)) if buffer else self._backend.recorder.clock.now()
        except Exception as error:
            self._broke(error)
            raise
        request = tracker.current.get()
        if request is not None:
            request.wrote(self._log, at)

    def close(self) -> None:
        """Close in order: close_notify, FIN, a short wait for the server's; keeps TCP_INFO and the session for a later resumption."""
        if self._log.closed_at is not None:
            return
        if self._tls is not None:
            if self._backend.sessions is not None:
                self._backend.sessions.keep(self._host, self._port, self._tls.engine.object.session)
            self._tls.say_goodbye(deadline(LINGER_S, None))
        self._log.closed_at = self._socket.close(linger_s=0.0 if self._log.error else LINGER_S)

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Handshake with the target, or with an HTTPS proxy. Closes the connection when it fails."""
        name = server_hostname or self._host
        to_proxy = ssl_context is self._backend.proxy_context
        session = None if self._backend.sessions is None or to_proxy else self._backend.sessions.get(name, self._port)
        wanted = "h1" if to_proxy else self._backend.protocol
        engine = TlsEngine(ssl_context, name, protocol=None if wanted is None else ALPN[wanted], session=session)
        layer = TlsLayer(self._top(), engine)
        self._handshake(layer, name, _limit(_least(timeout, self._backend.tls_timeout_s)))
        return RecordingStream(self._backend, self._log, self._socket, host=name, port=self._port, tls=layer)

    def get_extra_info(self, info: str) -> Any:
        """httpcore's names, and ``connection_log``."""
        if info == "ssl_object":
            return None if self._tls is None else self._tls.engine.object
        if info == "client_addr":
            return self._socket.sock.getsockname()
        if info == "server_addr":
            return self._socket.sock.getpeername()
        if info == "socket":
            return self._socket.sock
        if info == "is_readable":
            return self._is_readable()
        return self._log if info == "connection_log" else None

    def _broke(self, error: Exception) -> None:
        """Note it now: httpcore's own tidying up takes time that is not the request's."""
        self._log.error = reason_of(error)
        request = tracker.current.get()
        if request is not None:
            request.ended_at = request.ended_at or self._backend.recorder.clock.now()

    def _top(self) -> Layer:
        return self._socket if self._tls is None else self._tls

    def _is_readable(self) -> bool:
        """Asked about idle connections only: True means that the server has closed, or speaks out of turn."""
        try:
            return self._socket.is_readable() if self._tls is None else self._tls.is_readable()
        except Exception:  # broken is as good as closed
            return True

    def _handshake(self, layer: TlsLayer, name: str, limit: Deadline) -> None:
        started_at = self._backend.recorder.clock.now()
        try:
            layer.handshake(limit)
            note_session(self._log, layer.engine, name, self._backend.protocol)
        except Exception as error:
            failed = as_tls_failure(error)
            self._log.tls_error = self._log.error = reason_of(failed)
            self.close()
            raise failed from error
        finally:
            self._log.tls = Span(started_at=started_at, ended_at=self._backend.recorder.clock.now())


def note_session(log: ConnectionLog, engine: TlsEngine, name: str, wanted: str | None) -> None:
    """What was negotiated. Raises ``ProtocolNotOffered`` when h2 was wanted and is not it."""
    session = engine.object
    log.sni = None if _is_address(name) else name
    log.tls_version = session.version()
    cipher = session.cipher()
    log.cipher_suite = None if cipher is None else suite_name(session.context, cipher[0])
    log.alpn = session.selected_alpn_protocol()
    log.resumed = session.session_reused
    if wanted == "h2" and engine.protocol == "h2" and log.alpn != "h2":
        raise ProtocolNotOffered(f"the server chose {log.alpn or 'no protocol'} instead of h2")


_METADATA = frozenset({"169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16"})
"""Where clouds answer with credentials to whoever asks from inside."""


def is_off_limits(address: str) -> bool:
    """Whether an address is link-local (RFC 3927, RFC 4291) or a cloud's metadata service."""
    parsed = ipaddress.ip_address(address)
    mapped = getattr(parsed, "ipv4_mapped", None) or parsed
    return bool(mapped.is_link_local) or str(mapped) in _METADATA


def _limit(timeout: float | None) -> Deadline:
    request = tracker.current.get()
    return deadline(timeout, None) if request is None else deadline(timeout, request.total_at_s, request.first_at_s)


def _least(first: float | None, second: float | None) -> float | None:
    known = [t for t in (first, second) if t is not None]
    return min(known) if known else None


def as_tls_failure(error: Exception) -> Exception:
    """Whatever ended a handshake, as the failure that the records show."""
    if isinstance(error, (TlsFailed, TotalTimedOut)):
        return error
    if isinstance(error, httpcore.TimeoutException):
        return TlsHandshakeTimedOut(f"TLS handshake: {reason_of(error)}")
    return TlsFailed(f"the connection broke during the TLS handshake: {reason_of(error)}")


class TlsHandshakeTimedOut(ConnectTimedOut):
    """Connected, but the handshake took too long."""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
