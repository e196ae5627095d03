"""What a server says about itself beside what was measured: a third witness, never a measurement of ours. Absent is not zero."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerTime:
    """One duration that a server claims."""

    name: str
    """``processing``, ``queue``, ``prefill``, ``first-token``, ``generation``, ``load``, ``total``, ``upstream``, ``gateway``, or
    ``timing:NAME`` for a metric of Server-Timing."""
    ns: int
    source: str
    """The header field or body member that says it."""


@dataclass(frozen=True, slots=True)
class EdgeTcp:
    """Cloudflare's ``server-timing: cfL4``: the edge's own view of the TCP connection, the only look at sender-side loss there is."""

    rtt_ns: int | None = None
    min_rtt_ns: int | None = None
    rtt_var_ns: int | None = None
    sent: int | None = None
    received: int | None = None
    lost: int | None = None
    retransmitted: int | None = None
    delivery_rate: int | None = None
    congestion_window: int | None = None
    unsent_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class RateLimit:
    """One budget, as the latest answer shows it."""

    budget: str
    """``requests``, ``tokens``, ``input-tokens`` …"""
    limit: int | None
    remaining: int | None
    reset_ns: int | None
    """Until it is full again, where the server says so as a duration; None where it gives an instant."""


@dataclass(frozen=True, slots=True)
class ServerReport:
    """Everything one answer says of itself: in its head, and in the usage report inside its content."""

    times: tuple[ServerTime, ...] = ()
    conflicts: tuple[str, ...] = ()
    """Claims that the packets (or the client's clock) contradict, in words. What was measured stands."""
    edge_tcp: EdgeTcp | None = None
    request_id: str | None = None
    edge: str | None = None
    """Where the edge is: an airport code, a point of presence."""
    region: str | None = None
    rate_limits: tuple[RateLimit, ...] = ()
    should_retry: bool | None = None
    """``x-should-retry``; None without it."""
    backend: str | None = None
    """A value that names the backend (session, region, instance): for telling uneven backends apart."""
