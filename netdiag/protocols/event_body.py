"""Bodies that are streams of events: the octets of an answer in, ``StreamEvent`` rows with their moments out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from netdiag.protocols.anomalies import AnomalyLog
from netdiag.protocols.content_coding import ContentDecoder, codings_of, obstacle
from netdiag.protocols.event_readers import REPORT_TYPE, EventReader, reader_for
from netdiag.protocols.grpc import MessageSplitter, is_grpc, status_of
from netdiag.protocols.headers import Field, find, media_type
from netdiag.protocols.llm_events import EventClassifier
from netdiag.protocols.turn import Turn
from netdiag.records.stream import EventKind, StreamEvent
from netdiag.wire.chunk import Moment

# Requests whose answer, when it is not streamed, ends with a usage report.
_ANSWERS_WHOLE = re.compile(
    r"/(?:chat/)?completions\b|/responses\b|/messages\b|/api/(?:chat|generate)\b|:generateContent\b|/generate\b"
)
_MAX_WHOLE_BYTES = 1 << 20


class EventBody(Protocol):
    """Takes the content of one answer."""

    def feed(self, octets: bytes, moment: Moment) -> None:
        """``moment`` is that of the last octet."""

    def finish(self, turn: Turn) -> None:
        """The body ended (or the capture did): put what was found into the turn."""


def open_event_body(fields: Sequence[Field], path: str | None, log: AnomalyLog) -> EventBody | None:
    """A reader for the answer with this head to a request for ``path``; None when its content says nothing that netdiag asks for.

    Content codings are undone under limits; where that cannot be done, ``log`` says why events are not read.
    """
    body = _body_for(media_type(fields), to_report=wants_report(path))
    codings = () if body is None or isinstance(body, _GrpcBody) else codings_of(find(fields, "content-encoding"))
    if body is None or not codings:
        return body
    why_not = obstacle(codings)
    if why_not is None:
        return _DecodedBody(body, ContentDecoder(codings), log)
    if not isinstance(body, _WholeBody):
        log.add(f"events are not read: {why_not}")
    return None


def may_be_events(fields: Sequence[Field]) -> bool:
    """Whether ``open_event_body`` has a reader for answers with these fields to any request at all."""
    return _body_for(media_type(fields), to_report=True) is not None


@lru_cache(maxsize=1024)
def wants_report(path: str | None) -> bool:
    """Whether the answer to a request for ``path``, where it is not streamed, ends with a usage report."""
    return path is not None and _ANSWERS_WHOLE.search(path) is not None


def _body_for(media: str, *, to_report: bool) -> EventBody | None:
    if media == REPORT_TYPE:
        return _WholeBody() if to_report else None
    reader = reader_for(media)
    if reader is not None:
        return _EventsBody(reader)
    return _GrpcBody() if is_grpc(media) else None


class _DecodedBody:
    """Another body behind a content coding."""

    def __init__(self, body: EventBody, decoder: ContentDecoder, log: AnomalyLog) -> None:
        self._body = body
        self._decoder = decoder
        self._log = log
        self._given_up = False

    def feed(self, octets: bytes, moment: Moment) -> None:
        if self._given_up:
            return
        content = self._decoder.feed(octets)
        if content:
            self._body.feed(content, moment)
        if self._decoder.failed is not None:
            self._given_up = True
            self._log.add(self._decoder.failed, packet=moment.packet)

    def finish(self, turn: Turn) -> None:
        self._body.finish(turn)


class _WholeBody:
    """An answer of a model's API in one piece: how many tokens and which times it reports. Held until its end, up to a limit."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._bytes = 0

    def feed(self, octets: bytes, moment: Moment) -> None:
        self._bytes += len(octets)
        if self._bytes <= _MAX_WHOLE_BYTES:
            self._pieces.append(octets)
        else:
            self._pieces.clear()

    def finish(self, turn: Turn) -> None:
        classifier = EventClassifier()
        classifier.read_whole(b"".join(self._pieces))
        turn.tokens = classifier.tokens
        turn.reported_times = tuple(classifier.times)


class _Timeline:
    """Rows in the order of their events."""

    __slots__ = ("_carriers", "rows")

    def __init__(self) -> None:
        self.rows: list[StreamEvent] = []
        self._carriers: dict[int, int] = {}

    def add(self, kind: EventKind, size_bytes: int, moment: Moment) -> None:
        self.rows.append(
            StreamEvent(
                index=len(self.rows),
                kind=kind,
                deliverable_at=moment.deliverable_at,
                seen_at=moment.seen_at,
                size_bytes=size_bytes,
                packet=moment.packet,
                record=None if moment.chunk_offset < 0 else self._carrier(moment.chunk_offset),
                record_bytes=moment.chunk_bytes or None,
            )
        )

    def _carrier(self, chunk_offset: int) -> int:
        return self._carriers.setdefault(chunk_offset, len(self._carriers))


class _EventsBody:
    def __init__(self, reader: EventReader) -> None:
        self._reader = reader
        self._timeline = _Timeline()

    def feed(self, octets: bytes, moment: Moment) -> None:
        for kind, size in self._reader.read(octets):
            self._timeline.add(kind, size, moment)

    def finish(self, turn: Turn) -> None:
        classifier = self._reader.classifier
        turn.events = self._timeline.rows
        turn.stream_api = classifier.api or self._reader.format
        turn.tokens = classifier.tokens
        turn.reported_times = tuple(classifier.times)


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
