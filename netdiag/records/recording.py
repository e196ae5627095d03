"""What the probe itself saw: the client's own stamps and, beside each system call, the kernel's.

Application instants are monotonic stamps shifted to the epoch by one offset taken at the start (so durations never jump with the wall
clock); kernel instants are SO_TIMESTAMPING software stamps (wall clock, ns). A recording is joined with a capture by 4-tuple and stream id,
and without a capture its writes and reads stand in for segments.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from netdiag.records.call import AddressAttempt, Call
from netdiag.records.endpoint import Endpoint
from netdiag.records.exchange import InterimResponse, Outcome
from netdiag.records.tcp_info import TcpInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Two instants of one clock."""

    started_at: int
    ended_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketOperation:
    """One write to, or one read from, the TCP socket. ``data`` is what went over the wire (ciphertext under TLS)."""

    direction: int
    """0: written by the client, 1: read from the server."""
    data: bytes
    application_at: int
    """Just before the write call, or just after the read call returned."""
    kernel_at: int | None
    """Transmit stamp of the last octet's segment, or receive stamp; None where the kernel gave none."""
    acknowledged_at: int | None = None
    """TX ACK stamp of a write's last octet."""
    asked_at: int | None = None
    """Of a read: when the application began to ask for these octets. Between the previous read's end and this it was busy elsewhere,
    and the one stamp of a read stands for all that had come meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConnection:
    """One TCP connection that the probe opened (or tried to)."""

    id: int
    client: Endpoint | None
    """None when no attempt got as far as a local address."""
    server: Endpoint | None
    resolve: Span | None
    """None for a literal address or an address given by the user."""
    resolved_by: str | None = None
    """``literal``, ``given`` (by the user), ``hosts`` (file), ``system`` (its resolver, which may have had it in its cache)."""
    addresses: tuple[str, ...] = ()
    attempts: tuple[AddressAttempt, ...] = ()
    tcp: Span | None = None
    """The winner's connect call."""
    tls: Span | None = None
    sni: str | None = None
    tls_version: str | None = None
    """As ``records.tls.TlsSession.version``."""
    cipher_suite: str | None = None
    alpn: str | None = None
    resumed: bool | None = None
    tls_error: str | None = None
    proxy: Span | None = None
    """CONNECT sent → 2xx read."""
    operations: tuple[SocketOperation, ...] = ()
    tcp_info: TcpInfo | None = None
    closed_at: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRequest:
    """One attempt of one call, by the application's clock."""

    id: int
    call_id: int
    attempt: int
    arm: str
    trial: int
    """0 for the extra first round, which statistics leave out."""
    connection_id: int | None
    """Index of the ``ClientConnection`` used; None when none was made."""
    stream_id: int | None
    method: str
    url: str
    """Without credentials; secret-looking query values replaced."""
    authority: str
    path: str
    reused: bool
    submitted_at: int
    assigned_at: int | None = None
    """When a connection (old or new) was handed to the request."""
    first_write_at: int | None = None
    last_write_at: int | None = None
    headers_at: int | None = None
    """Final response head parsed."""
    last_read_at: int | None = None
    ended_at: int
    protocol: str | None = None
    status: int | None = None
    interim: tuple[InterimResponse, ...] = ()
    request_bytes: int | None = None
    response_bytes: int | None = None
    """Octets of the body as read."""
    outcome: Outcome = Outcome.UNKNOWN
    error: str | None = None
    body_reads: tuple[tuple[int, int], ...] = ()
    """(instant, octets) of every piece of body handed to the application."""
    response_headers: tuple[tuple[str, str], ...] = ()
    """Secrets replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsupportedArm:
    """An arm that the server does not speak (or that could not be tried), and why."""

    arm: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Everything the client saw of one probe."""

    connections: tuple[ClientConnection, ...] = ()
    requests: tuple[ClientRequest, ...] = ()
    calls: tuple[Call, ...] = ()
    arms: tuple[str, ...] = ()
    unsupported: tuple[UnsupportedArm, ...] = ()
    keylog: bytes = field(default=b"", repr=False)
    """NSS key log lines of our own sessions. Secret: never exported unless asked."""
    verification: str = "on"
    ended_early: str | None = None
    """Why the run ended before its plan did (rate limits, ceilings); None when it did not."""
    broken_rounds: int = 0
    """Rounds in which the server refused a call with a 429 or 503, so that they compare nothing; they were made again."""
    clock_step_ns: int | None = None
    """Wall clock against monotonic clock between start and end: a step or slew during the run."""
