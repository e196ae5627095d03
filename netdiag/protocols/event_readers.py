"""Streams of events by their media types: octets of an answer's content in, the kind and the size of each event out."""

from __future__ import annotations

from typing import Protocol

from netdiag.protocols import aws_events
from netdiag.protocols.llm_events import EventClassifier
from netdiag.protocols.ndjson import JsonLines
from netdiag.protocols.sse import EventStream
from netdiag.records.stream import EventKind

SSE_TYPE = "text/event-stream"
REPORT_TYPE = "application/json"
"""No stream: an answer in one piece, which may end with a usage report."""
NDJSON_TYPES = frozenset(
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


class EventReader(Protocol):
    """One stream."""

    format: str
    """What the stream is called when no event tells whose API it is."""
    classifier: EventClassifier

    def read(self, octets: bytes) -> list[tuple[EventKind, int]]:
        """Kind and octets of each event that ends in these octets."""
        ...


def reader_for(media: str) -> EventReader | None:
    """A reader for content of this media type; None for what is no stream of events whose kinds can be told."""
    if media == SSE_TYPE:
        return _Sse()
    if media in NDJSON_TYPES:
        return _Ndjson()
    return _Aws() if media == aws_events.CONTENT_TYPE else None


class _Sse:
    format = "sse"
    __slots__ = ("_stream", "classifier")

    def __init__(self) -> None:
        self._stream = EventStream()
        self.classifier = EventClassifier()

    def read(self, octets: bytes) -> list[tuple[EventKind, int]]:
        classify = self.classifier.classify
        return [
            (EventKind.COMMENT if event.comment else classify(event.type, event.data), event.size_bytes)
            for event in self._stream.feed(octets)
        ]


class _Ndjson:
    format = "ndjson"
    __slots__ = ("_lines", "classifier")

    def __init__(self) -> None:
        self._lines = JsonLines()
        self.classifier = EventClassifier()

    def read(self, octets: bytes) -> list[tuple[EventKind, int]]:
        classify = self.classifier.classify
        return [
            (EventKind.PING if line == b"" else classify("", line), size) for line, size in self._lines.feed(octets)
        ]


class _Aws:
    format = aws_events.BEDROCK
    __slots__ = ("_stream", "classifier")

    def __init__(self) -> None:
        self._stream = aws_events.AwsEventStream()
        self.classifier = EventClassifier()

    def read(self, octets: bytes) -> list[tuple[EventKind, int]]:
        return [
            (aws_events.classify(message, self.classifier), message.size_bytes) for message in self._stream.feed(octets)
        ]
