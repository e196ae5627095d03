"""Times of a streamed answer (server-sent events, NDJSON, gRPC messages)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class EventKind(StrEnum):
    """What one event of a stream carries."""

    ROLE = "role"
    """Opens the message, no text yet."""
    TEXT = "text"
    """Visible text."""
    REASONING = "reasoning"
    TOOL = "tool"
    REFUSAL = "refusal"
    USAGE = "usage"
    PING = "ping"
    COMMENT = "comment"
    ERROR = "error"
    DONE = "done"
    """``[DONE]``, ``message_stop``, ``response.completed``: the logical end."""
    OTHER = "other"


TOKEN_BEARING = frozenset({EventKind.TEXT, EventKind.REASONING, EventKind.TOOL, EventKind.REFUSAL})
"""Non-empty text in any channel."""
SIGNS_OF_LIFE = frozenset({EventKind.COMMENT, EventKind.PING})
"""They prove that the path is alive and are no event of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvent:
    """One event, when the octet that ends it was deliverable."""

    index: int
    kind: EventKind
    deliverable_at: int
    seen_at: int
    size_bytes: int
    packet: int | None = None
    record: int | None = field(default=None, compare=False)  # the same event however its stream was cut into records
    """Which of the TLS records (in clear text: of the segments) that carry this stream's events its last octet is in, from 0; None
    where that is not known."""
    record_bytes: int | None = field(default=None, compare=False)
    """Octets of content in that record."""
    read_at: int | None = None
    """When the application had it; None without client hooks."""


class StallCause(StrEnum):
    """Who made a stream stand still."""

    NETWORK = "network"
    """Octets were on their way, or lost: later events return to the schedule."""
    SERVER = "server"
    """The server, or what stands behind it, sent nothing: later events are late by as much."""
    CLIENT = "client"
    """The octets were here, or could not come because the client did not read."""
    UNDECIDED = "undecided"
    """The evidence does not tell, or contradicts itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStall:
    """A gap between two token-bearing events that is far above the stream's usual one, and whose fault it is."""

    started_at: int
    """The event before it was deliverable (``client``: was read)."""
    after_event: int
    """Index of that event in the timeline."""
    gap_ns: int
    usual_ns: int
    """The median time between arrivals nearby."""
    excess_ns: int
    """``gap_ns - usual_ns``."""
    shift_ns: int | None
    """By how much the events after it are later than the schedule of those before it; None where too few are left to tell."""
    shift_share: float | None
    """``shift_ns / excess_ns``: below 0.3 speaks for the network, above 0.7 for the server."""
    cause: StallCause
    method: str
    """What decided: ``hole``, ``packet-count``, ``window`` (TCP's), ``flow-control`` (HTTP/2's), ``read-lag``, ``signs-of-life``,
    ``conservation``; ``none`` if nothing did."""
    signs_of_life: int = 0
    """Pings and comments that arrived meanwhile."""
    packets: tuple[int, ...] = ()
    """The packets of the events at both ends, and those that show why."""

    @property
    def ended_at(self) -> int:
        """When it was over."""
        return self.started_at + self.gap_ns


class Delivery(StrEnum):
    """How a stream came through."""

    FLOWING = "flowing"
    """Event by event."""
    BUFFERED = "buffered"
    """Something on the way collected octets before it let them go."""
    BURSTY = "bursty"
    """In regular bursts: an upstream that releases blocks, or a hop that collects for a fixed time."""
    TOO_SHORT = "too-short"
    """Too few events to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamBuffering:
    """Scores of the proxy-buffering detector; None where there is nothing to score."""

    events_per_record: float | None
    """B1. About 1 where every event leaves by itself."""
    immediate_share: float | None
    """B2: share of the gaps between events below 1 ms."""
    first_event_share: float | None
    """B3: time to the first event ÷ time to the last; near 1 where everything came at the end."""
    block_bytes: int | None
    """B4: the buffer size (4096, 8192, 16384, 32768) just under which most records end; None if none."""
    head_with_first_event: bool | None
    """B5: the response head and the first event came in one record."""
    burst_period_ns: int | None
    """Median time between bursts; None without regular bursts."""
    verdict: Delivery
    reason: str
    """The scores that decided, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTiming:
    """The four first-times count from the exchange's first request octet sent, in nanoseconds; None when there was no such event."""

    api: str | None
    """``openai-chat``, ``openai-responses``, ``anthropic``, ``gemini``, ``ollama``, ``bedrock``; ``sse``, ``ndjson``, ``grpc`` where no API is known."""
    first_byte_ns: int | None
    first_event_ns: int | None
    first_token_ns: int | None
    first_visible_ns: int | None
    last_content_ns: int | None
    logical_end_ns: int | None
    """None when the stream ended without its mark."""
    events: int
    token_events: int
    gaps_ns: tuple[int, ...] = ()
    """Between consecutive token-bearing events."""
    tokens: int | None = None
    """Only from the server's own usage report."""
    chunks: int | None = None
    """TLS records (in clear text: segments) that carried the events."""
    events_per_record: float | None = None
    burst_factor: float | None = None
    """Token-bearing events per arrival, arrivals less than 1 ms apart counted as one: 1 where they flow."""
    chunks_per_read: float | None = None
    """Records per read of the application that brought events; None without client hooks."""
    read_lag_ns: int | None = None
    """Median time from deliverable to read; None without client hooks."""
    stalls: tuple[StreamStall, ...] = ()
    buffering: StreamBuffering | None = None
    timeline: tuple[StreamEvent, ...] = ()
