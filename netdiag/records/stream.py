"""Times of a streamed answer (server-sent events, NDJSON, gRPC messages)."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvent:
    """One event, when the octet that ends it was deliverable."""

    index: int
    kind: EventKind
    deliverable_at: int
    seen_at: int
    size_bytes: int
    packet: int | None = None
    read_at: int | None = None
    """When the application had it; None without client hooks."""


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
    """TLS records (or segments) that carried the events."""
    timeline: tuple[StreamEvent, ...] = ()
