"""Times of a streamed answer: four firsts, the gaps between token-bearing events, the logical end, stalls and buffering."""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from netdiag.analysis.buffering import buffering, burst_factor, events_per_record
from netdiag.analysis.median import median
from netdiag.analysis.stalls import Surroundings, find_stalls
from netdiag.protocols.turn import Turn
from netdiag.records.stream import (
    SIGNS_OF_LIFE,
    TOKEN_BEARING,
    Delivery,
    EventKind,
    StallCause,
    StreamEvent,
    StreamStall,
    StreamTiming,
)

_REMAINDER_BYTES = 256
"""Octets after the last event: a blank line, a byte order mark before the first."""
_COLLECTED = frozenset({Delivery.BUFFERED, Delivery.BURSTY})


def stream_timing(turn: Turn, around: Surroundings | None = None) -> StreamTiming | None:
    """None for an answer that is no stream of events. Counts from the request's first octet sent; without that, firsts are None."""
    events = turn.events
    if not events:
        return None
    base = None if turn.request_first is None else turn.request_first.seen_at
    tokens = [e for e in events if e.kind in TOKEN_BEARING]
    firsts = first_times(turn)

    def since(event: StreamEvent | None) -> int | None:
        return None if event is None or base is None else event.deliverable_at - base

    first_byte = turn.response_first
    first_event = _first_event(events)
    delivery = buffering(
        events,
        first_event_ns=firsts.first_event_ns,
        end_ns=since(events[-1]),
        head_with_first_event=_head_with(turn, first_event),
    )
    collected = delivery is not None and delivery.verdict in _COLLECTED
    surroundings = dataclasses.replace(around or Surroundings(), collected=collected)
    records = {e.record for e in events if e.record is not None}
    return StreamTiming(
        api=turn.stream_api,
        first_byte_ns=None if first_byte is None or base is None else first_byte.deliverable_at - base,
        **firsts._asdict(),
        last_content_ns=since(tokens[-1] if tokens else None),
        logical_end_ns=since(next((e for e in events if e.kind is EventKind.DONE), None)),
        events=len(events),
        token_events=len(tokens),
        gaps_ns=_gaps_ns(tokens),
        tokens=turn.tokens,
        chunks=len(records) or len({(e.deliverable_at, e.packet) for e in events}),
        events_per_record=events_per_record(events),
        burst_factor=burst_factor(events),
        stalls=find_stalls(events, surroundings),
        buffering=delivery,
        timeline=tuple(events),
    )


class FirstTimes(NamedTuple):
    """Counted from the request's first octet sent; None without that, or without such an event."""

    first_event_ns: int | None
    first_token_ns: int | None
    first_visible_ns: int | None


def first_times(turn: Turn) -> FirstTimes:
    """What statistics need of a stream of events."""
    events = turn.events
    if turn.request_first is None:
        return FirstTimes(None, None, None)
    base = turn.request_first.seen_at
    firsts = (
        _first_event(events),
        next((e for e in events if e.kind in TOKEN_BEARING), None),
        next((e for e in events if e.kind is EventKind.TEXT), None),
    )
    return FirstTimes(*(None if e is None else e.deliverable_at - base for e in firsts))


def _first_event(events: Sequence[StreamEvent]) -> StreamEvent | None:
    return next((e for e in events if e.kind not in SIGNS_OF_LIFE), None)


def _gaps_ns(tokens: Sequence[StreamEvent]) -> tuple[int, ...]:
    return tuple(b.deliverable_at - a.deliverable_at for a, b in pairwise(tokens))


def _head_with(turn: Turn, first: StreamEvent | None) -> bool | None:
    """Whether the response head ended in the record in which the first event ended: both were held by the same hand until then."""
    head = turn.response_head_last
    if head is None or first is None or head.chunk_offset < 0 or first.record is None:
        return None
    return head.deliverable_at == first.deliverable_at and head.packet == first.packet


def with_reads(
    stream: StreamTiming | None, body_reads: Sequence[tuple[int, int]], *, rtt_ns: int | None = None
) -> StreamTiming | None:
    """The same stream with when the application had each event, and where it read late.

    ``body_reads``: instants and octets of the pieces handed to the application.
    """
    if stream is None or not body_reads:
        return stream
    reads = [at for at, _ in body_reads]
    places = _places(stream.timeline, body_reads)
    timeline = tuple(
        dataclasses.replace(event, read_at=reads[place] if place < len(reads) else None)
        for event, place in zip(stream.timeline, places, strict=True)
    )
    lags = [e.read_at - e.deliverable_at for e in timeline if e.read_at is not None]
    used = {place for place in places if place < len(reads)}
    return dataclasses.replace(
        stream,
        timeline=timeline,
        chunks_per_read=round(stream.chunks / len(used), 3) if stream.chunks and used else None,
        read_lag_ns=round(median(lags)) if lags else None,
        stalls=_with_late_reads(stream.stalls, find_stalls(timeline, Surroundings(rtt_ns=rtt_ns))),
    )


def _with_late_reads(told: tuple[StreamStall, ...], again: tuple[StreamStall, ...]) -> tuple[StreamStall, ...]:
    """What the wire told stands; only the reader's own lateness is new."""
    late = [s for s in again if s.cause is StallCause.CLIENT and s.method == "read-lag"]
    return tuple(sorted([*told, *late], key=lambda s: s.started_at))


def _places(events: Sequence[StreamEvent], body_reads: Sequence[tuple[int, int]]) -> list[int]:
    """In which read each event ended: by counting octets; behind a content coding by time, as the first read after it could be."""
    ends = list(accumulate(event.size_bytes for event in events))
    read_to = list(accumulate(octets for _, octets in body_reads))
    if ends[-1] <= read_to[-1] <= ends[-1] + _REMAINDER_BYTES:
        return [bisect_left(read_to, end) for end in ends]
    reads = [at for at, _ in body_reads]
    return [bisect_left(reads, event.deliverable_at) for event in events]
