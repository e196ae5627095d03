"""What the modelled client notes about each exchange: places in its own TCP stream, from which the observer's times follow."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class ExchangeMarks:
    """One request of the client. Places are offsets in the client's TCP stream; None when it did not come to that."""

    connection: int
    """Number of the planned connection."""
    request: int
    """Number of the request on its connection, in the order in which they were sent."""
    method: str
    path: str
    stream_id: int | None = None
    first_offset: int | None = None
    """First octet of the request head (of its TLS record)."""
    head_end: int | None = None
    """Just after the request head."""
    body_first: int | None = None
    """First octet of the body (of its record); None without one."""
    last_end: int | None = None
    """Just after the last octet of the request."""
    waited_for_continue: bool = False
    status: int | None = None
    grpc_status: int | None = None
    outcome: str = "incomplete"
    """``ok``, ``http_error``, ``reset``, ``closed_early``, ``refused``, ``timeout:connect``, ``tls_fail``, ``dns_fail``, ``incomplete``."""
    started_at: int | None = None
    """When the client began to write it."""
    ended_at: int | None = None
    """When the client had read its last octet, or gave up."""
    error_code: int | None = None
    interim: list[int] = field(default_factory=list)


def outcome_of(status: int | None, grpc_status: int | None = None) -> str:
    """The outcome of a complete answer."""
    return "http_error" if (status is not None and status >= 400) or grpc_status else "ok"
