"""The milestones of one request by the application's clock, gathered while httpcore works on it.

httpcore tells what it does through the ``trace`` extension; the network backend adds the instants beside the system calls. Both find the
request of their thread through ``current``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from netdiag.probe.clock import ProbeClock
from netdiag.probe.connection_log import ConnectionLog
from netdiag.records.exchange import InterimResponse
from netdiag.records.recording import Span

current: ContextVar[RequestTracker | None] = ContextVar("netdiag_request", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandoned:
    """A request that httpcore wrote to a connection which the server had given up, and then sent again on another one without a word."""

    connection: ConnectionLog | None
    stream_id: int | None
    reused: bool
    submitted_at: int
    assigned_at: int | None
    first_write_at: int
    last_write_at: int | None
    ended_at: int


@dataclass(slots=True)
class RequestTracker:
    """Filled by ``trace`` and by the streams; read when the request is over."""

    clock: ProbeClock
    total_at_s: float | None = None
    """End of the whole call, on the monotonic clock."""
    first_at_s: float | None = None
    """When the answer's first event must be there, likewise; None once it is, or without such a limit."""
    submitted_at: int = 0
    assigned_at: int | None = None
    first_write_at: int | None = None
    last_write_at: int | None = None
    headers_at: int | None = None
    last_read_at: int | None = None
    ended_at: int | None = None
    """When it failed; None while it has not."""
    connection: ConnectionLog | None = None
    reused: bool = False
    stream_id: int | None = None
    request_bytes: int = 0
    """Octets of the body as sent."""
    body_reads: list[tuple[int, int]] = field(default_factory=list)
    interim: list[InterimResponse] = field(default_factory=list)
    abandoned: list[Abandoned] = field(default_factory=list)
    """Attempts before the one that the other fields tell of."""
    _sending: bool = False
    _tunnel_started_at: int | None = None

    def trace(self, name: str, info: dict[str, Any]) -> None:
        """httpcore's ``trace`` extension: ``http2.send_request_headers.started`` and so on."""
        at = self.clock.now()
        event = name.partition(".")[2]
        if self.assigned_at is None:
            self.assigned_at = at
        if event.startswith("send_request_headers.") and _is_connect(info):
            self._tunnel_started_at = at
        if self._tunnel_started_at is not None:
            self._trace_tunnel(event, at)
            return
        handler = _HANDLERS.get(event)
        if handler is not None:
            handler(self, at, info)

    def opened(self, log: ConnectionLog) -> None:
        """The backend opens a connection for this request."""
        self._begin_again(self.clock.now())
        self.connection = log

    def wrote(self, log: ConnectionLog, at: int) -> None:
        """A stream sends octets in this request's thread; only those of the request itself count (not acknowledgements of h2)."""
        if not self._sending:
            return
        if self.first_write_at is None:
            self.first_write_at = at
            self.reused = log.requests > 0
            self.connection = log
            log.requests += 1
            log.listeners[self.stream_id] = self._interim

    def _interim(self, status: int, at: int) -> None:
        if self.headers_at is None:
            self.interim.append(InterimResponse(status=status, at=at))

    def _trace_tunnel(self, event: str, at: int) -> None:
        """CONNECT sent to its answer: the proxy's phase, not the request's (httpcore traces it under the request's name)."""
        if event in ("receive_response_headers.complete", "receive_response_headers.failed"):
            if self.connection is not None and self._tunnel_started_at is not None:
                self.connection.proxy = Span(started_at=self._tunnel_started_at, ended_at=at)
            self._tunnel_started_at = None

    def _begin_again(self, at: int) -> None:
        """What has been written so far was in vain: the request starts anew."""
        if self.first_write_at is None:
            return
        self.abandoned.append(
            Abandoned(
                connection=self.connection,
                stream_id=self.stream_id,
                reused=self.reused,
                submitted_at=self.submitted_at,
                assigned_at=self.assigned_at,
                first_write_at=self.first_write_at,
                last_write_at=self.last_write_at,
                ended_at=at,
            )
        )
        self.submitted_at, self.assigned_at = at, None
        self.first_write_at = self.last_write_at = self.headers_at = self.ended_at = None
        self.stream_id, self.reused, self._sending = None, False, False
        self.interim.clear()

    def _send_started(self, at: int, info: dict[str, Any]) -> None:
        self._begin_again(at)
        self._sending = True
        stream_id = info.get("stream_id")
        self.stream_id = stream_id if isinstance(stream_id, int) else None

    def _send_ended(self, at: int, info: dict[str, Any]) -> None:
        self.last_write_at = at
        self._sending = False

    def _headers(self, at: int, info: dict[str, Any]) -> None:
        self.headers_at = at


_HANDLERS: dict[str, Callable[[RequestTracker, int, dict[str, Any]], None]] = {
    "send_request_headers.started": RequestTracker._send_started,
    "send_request_body.complete": RequestTracker._send_ended,
    "send_request_body.failed": RequestTracker._send_ended,
    "receive_response_headers.complete": RequestTracker._headers,
}


def _is_connect(info: dict[str, Any]) -> bool:
    return getattr(info.get("request"), "method", b"") == b"CONNECT"
