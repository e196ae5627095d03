"""The recording network backend for httpcore: it owns name resolution, the race of addresses, TLS, and every write and read.

A newcomer starts here: httpcore calls ``connect_tcp``, and on the stream (``stream``) ``start_tls``, then ``write`` and ``read``; each
leaves its instants in a ``ConnectionLog`` and, where it belongs to a request, in that request's ``RequestTracker``.
"""

from __future__ import annotations

import contextlib
import ipaddress
import time
from collections.abc import Iterable
from typing import Any

import httpcore

from netdiag.probe import tracker
from netdiag.probe.connection_log import ConnectionLog, Recorder
from netdiag.probe.eyeballs import Race, race
from netdiag.probe.failures import ResolveFailed, connect_failure, reason_of
from netdiag.probe.limits import Deadline, deadline
from netdiag.probe.permitted import permitted
from netdiag.probe.recorded_socket import RecordedSocket
from netdiag.probe.resolver import Resolver
from netdiag.probe.stream import RecordingStream
from netdiag.probe.stream_notes import StreamNotes
from netdiag.probe.tls_offer import TlsOffer
from netdiag.records.endpoint import Endpoint
from netdiag.records.recording import Span

_DEFAULT_CONNECT_S = 30.0


class RecordingBackend(httpcore.NetworkBackend):
    """One per arm, whose TLS is ``offer``; ``family`` restricts it to ``ipv4`` or ``ipv6``."""

    def __init__(
        self,
        recorder: Recorder,
        resolver: Resolver,
        offer: TlsOffer,
        *,
        family: str | None = None,
        allow_link_local: bool = False,
    ) -> None:
        self.offer = offer
        self._recorder = recorder
        self._resolver = resolver
        self._family = family
        self._allow_link_local = allow_link_local

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Resolve, race, connect. Raises the exceptions of ``failures``."""
        log = self._recorder.new_connection()
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
        notes = StreamNotes(self._recorder.clock, log, won, self.offer.protocol)
        return RecordingStream(notes, self.offer, host=host, port=port)

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
            resolved = self._resolver.resolve(host, port, timeout_s=min(limit.left_s(), _DEFAULT_CONNECT_S))
        except ResolveFailed as error:
            log.resolve = error.span
            raise
        log.resolve, log.addresses, log.resolved_by = resolved.span, resolved.addresses, resolved.source
        return permitted(host, resolved.addresses, family=self._family, allow_link_local=self._allow_link_local)

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
        result = race(addresses, port, clock=self._recorder.clock, timeout_s=timeout_s, local_address=local_address)
        log.attempts = tuple(result.attempts)
        if result.winner is None or result.won is None:
            raise connect_failure([a.outcome for a in result.attempts], f"{host} port {port}")
        return _adopt(log, result, self._recorder)


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
