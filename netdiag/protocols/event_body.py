"""Bodies that are streams of events: the octets of an answer in, ``StreamEvent`` rows with their moments out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from netdiag.protocols.anomalies import AnomalyLog
from netdiag.protocols.grpc import MessageSplitter, is_grpc, status_of
from netdiag.protocols.headers import Field, find
from netdiag.protocols.llm_events import EventClassifier
from netdiag.protocols.ndjson import JsonLines
from netdiag.protocols.sse import EventStream
from netdiag.protocols.turn import Turn
from netdiag.records.stream import EventKind, StreamEvent
from netdiag.wire.chunk import Moment

_NDJSON_TYPES = frozenset(
    {
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "application/x-jsonlines",
        "application/json-lines",
        "application/json-seq",
        "application/stream+json",
    }
)


class EventBody(Protocol):
    """Takes the content of one answer."""

    def feed(self, octets: bytes, moment: Moment) -> None:
        """``moment`` is that of the last octet."""

    def finish(self, turn: Turn) -> None:
        """The body ended (or the capture did): put what was found into the turn."""


def open_event_body(fields: Sequence[Field], status: int | None, log: AnomalyLog) -> EventBody | None:
    """A reader for the answer with this head; None when its content is not a stream of events.

    A content coding hides the events: bodies are not decoded.
    """
    content_type = find(fields, "content-type")
    if content_type is None:
        return None
    media = content_type.partition(";")[0].strip().lower()
    if is_grpc(media):
        return _GrpcBody()
    if media != "text/event-stream" and media not in _NDJSON_TYPES:
        return None
    if (find(fields, "content-encoding") or "identity").lower() != "identity":
        return None
    return _SseBody() if media == "text/event-stream" else _NdjsonBody()


class _Timeline:
    """Rows in the order of their events."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: list[StreamEvent] = []

    def add(self, kind: EventKind, size_bytes: int, moment: Moment) -> None:
        self.rows.append(
            StreamEvent(
                index=len(self.rows),
                kind=kind,
                deliverable_at=moment.deliverable_at,
                seen_at=moment.seen_at,
                size_bytes=size_bytes,
                packet=moment.packet,
            )
        )


class _SseBody:
    def __init__(self) -> None:
        self._stream = EventStream()
        self._classifier = EventClassifier()
        self._timeline = _Timeline()

    def feed(self, octets: bytes, moment: Moment) -> None:
        for event in self._stream.feed(octets):
            kind = EventKind.COMMENT if event.comment else self._classifier.classify(event.type, event.data)
            self._timeline.add(kind, event.size_bytes, moment)

    def finish(self, turn: Turn) -> None:
        turn.events = self._timeline.rows
        turn.stream_api = self._classifier.api or "sse"
        turn.tokens = self._classifier.tokens


class _NdjsonBody:
    def __init__(self) -> None:
        self._lines = JsonLines()
        self._classifier = EventClassifier()
        self._timeline = _Timeline()

    def feed(self, octets: bytes, moment: Moment) -> None:
        for line, size in self._lines.feed(octets):
            kind = EventKind.PING if line == b"" else self._classifier.classify("", line)
            self._timeline.add(kind, size, moment)

    def finish(self, turn: Turn) -> None:
        turn.events = self._timeline.rows
        turn.stream_api = self._classifier.api or "ndjson"
        turn.tokens = self._classifier.tokens


class _GrpcBody:
    def __init__(self) -> None:
        self._messages = MessageSplitter()
        self._timeline = _Timeline()

    def feed(self, octets: bytes, moment: Moment) -> None:
        for size in self._messages.feed(octets):
            self._timeline.add(EventKind.OTHER, size, moment)

    def finish(self, turn: Turn) -> None:
        turn.events = self._timeline.rows
        turn.stream_api = "grpc"
        turn.trailers = turn.trailers or self._messages.trailers
        turn.grpc_status = status_of(turn.trailers, turn.response_headers)
