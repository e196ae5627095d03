"""What the HTTP decoders say: one request and its answer on one connection, with the moments that phases are made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from netdiag.records.server_report import ServerTime
from netdiag.records.stream import StreamEvent
from netdiag.wire.chunk import Moment


class TurnEnd(StrEnum):
    """How the octets of a turn end."""

    COMPLETE = "complete"
    UNTIL_CLOSE = "until-close"
    """A body that only the end of the connection delimits (RFC 9112 section 6.3, case 8), and the connection ended."""
    RESET_BY_CLIENT = "reset-by-client"
    RESET_BY_SERVER = "reset-by-server"
    """RST_STREAM; a TCP reset is known only to the caller."""
    GOAWAY = "goaway"
    REFUSED = "refused-stream"
    INCOMPLETE = "incomplete"
    """The octets end before the message does."""
    TUNNEL = "tunnel"
    """The connection became something else: CONNECT, or 101."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterimMoment:
    """A 1xx response head."""

    status: int
    moment: Moment


@dataclass(slots=True, kw_only=True)
class Turn:
    """One request and its answer. Either half may be missing in a capture that begins or ends in the middle.

    Header values that are secrets are replaced when the turn is made (see ``protocols.redact``); names are lower case.
    """

    ordinal: int
    protocol: str
    """``http/1.0``, ``http/1.1`` or ``h2``."""
    stream_id: int | None = None
    method: str | None = None
    scheme: str | None = None
    authority: str | None = None
    path: str | None = None
    absolute_target: bool = False
    """The request target was in absolute form (RFC 9112 section 3.2.2): the request went to a proxy."""
    status: int | None = None
    """Of the final response; with ``RESET_BY_CLIENT`` it may have come after the reset, then the response has no moments."""
    grpc_status: int | None = None
    interim: list[InterimMoment] = field(default_factory=list)
    request_first: Moment | None = None
    """First octet of the request head."""
    request_head_last: Moment | None = None
    """Last octet of the request head."""
    request_body_first: Moment | None = None
    request_last: Moment | None = None
    """Last octet of the request (END_STREAM); None while it is incomplete."""
    response_first: Moment | None = None
    """First octet of the **final** response head; interim responses are in ``interim``."""
    response_head_last: Moment | None = None
    response_body_first: Moment | None = None
    response_last: Moment | None = None
    """Last octet of the response (last chunk, END_STREAM); the last octet seen where the end is not COMPLETE."""
    request_packet: int | None = None
    """HTTP/2: the packet that completes the HEADERS frame itself (its CONTINUATIONs may follow): there Wireshark shows the request."""
    request_bytes: int = 0
    """Octets of the request as sent: head and framing included (HTTP/2: its HEADERS, CONTINUATION and DATA frames)."""
    response_bytes: int = 0
    """Octets of the final response as sent; interim responses are not counted."""
    request_body_bytes: int = 0
    """Octets of content, without transfer coding, frame headers and padding; content coding is left as it is."""
    response_body_bytes: int = 0
    request_missing_bytes: int = 0
    """Octets of the request that the capture lacks, as far as their number is known; counted in ``request_bytes`` too."""
    response_missing_bytes: int = 0
    request_headers: tuple[tuple[str, str], ...] = ()
    response_headers: tuple[tuple[str, str], ...] = ()
    trailers: tuple[tuple[str, str], ...] = ()
    events: list[StreamEvent] = field(default_factory=list)
    """Events of an SSE, NDJSON or gRPC answer."""
    stream_api: str | None = None
    tokens: int | None = None
    """Output tokens by the server's own usage report; None without one."""
    reported_times: tuple[ServerTime, ...] = ()
    """Durations that the server claims inside the answer's content (those in its head: ``server_reports.read_headers``)."""
    end: TurnEnd = TurnEnd.INCOMPLETE
    expects_continue: bool = False
    pushed: bool = False
    headers_incomplete: bool = False
    """HPACK history was missing, so some fields are unknown."""
    error_code: int | None = None
    """RST_STREAM or GOAWAY error code."""
    ended: Moment | None = None
    """The RST_STREAM or GOAWAY that ended the turn; None for every other end."""
    open_streams: int | None = None
    """HTTP/2: streams of the client that were open when this one was opened; None for HTTP/1."""
    other_data_bytes: int = 0
    """HTTP/2: DATA octets of other streams that the server sent between this answer's first and last DATA frame."""
