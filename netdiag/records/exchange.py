"""One HTTP request and its answer on the wire, or one turn of records where nothing could be read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from netdiag.records.server_report import ServerReport
from netdiag.records.stream import StreamTiming
from netdiag.records.timing import ClockTimeline, Phase

CONNECT = "CONNECT"
"""The method that asks a proxy for a tunnel (RFC 9110 section 9.3.6): a set-up, not a request to the server."""


class Outcome(StrEnum):
    """How an exchange ended."""

    OK = "ok"
    """A final response with a status below 400, complete."""
    HTTP_ERROR = "http_error"
    """A complete final response with a status of 400 and above (or a gRPC status other than 0)."""
    STREAM_ERROR = "stream_error"
    """A complete final response whose status promised an answer, but whose stream has an event that says that it failed."""
    RESET = "reset"
    """RST, RST_STREAM or a GOAWAY below this stream before the response was complete."""
    CLOSED_EARLY = "closed_early"
    """The connection ended in order, but before the response was complete."""
    REFUSED = "refused"
    """The SYN was answered with RST."""
    TIMEOUT_CONNECT = "timeout:connect"
    TIMEOUT_READ = "timeout:read"
    TIMEOUT_WRITE = "timeout:write"
    TIMEOUT_POOL = "timeout:pool"
    TIMEOUT_TOTAL = "timeout:total"
    DNS_FAIL = "dns_fail"
    TLS_FAIL = "tls_fail"
    UNREACHABLE = "unreachable"
    """The network said so (ICMP, EHOSTUNREACH)."""
    INCOMPLETE = "incomplete"
    """The capture ends, or lacks octets, before the response is complete."""
    UNKNOWN = "unknown"
    """Nothing could be read: an encrypted exchange without keys that carries no status."""
    SUPERSEDED = "superseded"
    """Of several addresses of one name this one was not reached, and another was (RFC 8305, or one after the other)."""

    @property
    def failed(self) -> bool:
        """An error status or event, or an end before its time. What a capture merely does not show is no failure."""
        return self not in (Outcome.OK, Outcome.UNKNOWN, Outcome.INCOMPLETE, Outcome.SUPERSEDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class InterimResponse:
    """A 1xx response (RFC 9110 section 15.2). It never ends a wait."""

    status: int
    at: int
    packet: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request, from the first thing done for it to the last octet of its answer."""

    id: int
    connection_id: int | None
    """None when no connection came about (DNS failure)."""
    call_id: int | None = None
    attempt: int | None = None
    stream_id: int | None = None
    ordinal: int = 0
    """0 for the first request of the connection."""
    reused: bool = False
    idle_before_ns: int | None = None
    """Since the previous response on this connection ended; None for the first, or when requests overlap."""
    protocol: str | None = None
    """``http/1.0``, ``http/1.1``, ``h2``; None without keys."""
    method: str | None = None
    scheme: str | None = None
    authority: str | None = None
    path: str | None = None
    """Request target; values of secret-looking query parameters are replaced."""
    status: int | None = None
    grpc_status: int | None = None
    interim: tuple[InterimResponse, ...] = ()
    outcome: Outcome = Outcome.UNKNOWN
    outcome_detail: str | None = None
    """Who and in which phase, in words: ``alert handshake_failure from server`` …"""
    request_packet: int | None = None
    """Where Wireshark shows the request: the packet that completes it, or its HEADERS frame; None where it is another exchange's (h2c)."""
    response_packet: int | None = None
    """The packet that made the first octet of the final response head deliverable: with it, or one that filled a hole before it."""
    request_bytes: int | None = None
    """Octets of head and body of the request as sent (decrypted where that is possible); None if not known."""
    response_bytes: int | None = None
    request_headers: tuple[tuple[str, str], ...] = ()
    """Secrets replaced."""
    response_headers: tuple[tuple[str, str], ...] = ()
    trailers: tuple[tuple[str, str], ...] = ()
    started_at: int
    ended_at: int
    total_ns: int
    unattributed_ns: int
    phases: tuple[Phase, ...] = ()
    wait_path_ns: int | None = None
    """Part of the wait that the path needs at least: the connection's min RTT (bounded by the wait)."""
    wait_think_ns: int | None = None
    """Upper bound of the server's part: wait − min RTT − ``wait_loss_ns``."""
    wait_think_lo_ns: int | None = None
    """Lower bound of the server's part: from an acknowledgement of the whole request that came before the answer to that, less what loss can
    have made of it. None where the answer itself was the first acknowledgement."""
    wait_loss_ns: int | None = None
    """Part of the wait that loss made: until the last transmission of the request that was needed, and while the answer's beginning lay
    behind a hole. None without packets, and where the end of the request was not captured."""
    answered_early: bool = False
    """The answer began before the request was complete: there is no wait, and what of the upload went on after the answer is not in the total."""
    loss_ns: int | None = None
    """Time in this exchange during which octets waited for lost ones (from seen to deliverable), or were themselves lost on their way from
    the capture point (from their first transmission to the last one needed). What only the capture lost is not in it. None without packets."""
    loss_hi_ns: int | None = None
    """An upper bound, where ``loss_ns`` may not be all: with the silences after which lost data came looking like new, which only the
    sender's packet count shows. None where nothing speaks for more than ``loss_ns``."""
    window_ns: int | None = None
    """Time in this exchange during which the sender was stopped by a full or zero window of TCP."""
    upload_window_ns: int | None = None
    """HTTP/2: time in this exchange during which the client could send no more of a body because the server's flow-control windows were
    used up (RFC 9113 section 5.2). None without HTTP/2, and where the connection's beginning was not captured."""
    download_window_ns: int | None = None
    """The same of the server, which waited for the client's windows."""
    server_name: str | None = None
    """SNI, or the host where the exchange has no readable head."""
    fallback_ns: int | None = None
    """From the first SYN to another address of the same name, which was not reached meanwhile, to the SYN of the connection that was used: a
    dead address family, a refused address. None where this was the first address."""
    opener_id: int | None = None
    """The exchange that paid for the set-up this one waited for (several requests on one cold connection)."""
    pushed: bool = False
    stream: StreamTiming | None = None
    server_report: ServerReport | None = None
    """What the answer itself says of its times, its origin and its limits; None when it says nothing of the kind."""
    clocks: dict[str, ClockTimeline] | None = None
    """Only in a probe: the same phases by ``application``, ``kernel`` and ``wire`` clock."""
    arm: str | None = None
    trial: int | None = None

    @property
    def failed(self) -> bool:
        """As its outcome."""
        return self.outcome.failed
