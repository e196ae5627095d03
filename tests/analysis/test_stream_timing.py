"""The four first-times, the gaps and the logical end of a streamed answer."""

from __future__ import annotations

from netdiag.analysis.stream_timing import stream_timing
from netdiag.records.stream import EventKind, StreamEvent
from tests.support.fabricated import ns
from tests.support.turns import at, moment, whole

K = EventKind


def events(*told: tuple[EventKind, float]) -> list[StreamEvent]:
    return [
        StreamEvent(index=i, kind=kind, deliverable_at=at(ms), seen_at=at(ms), size_bytes=90, packet=round(ms))
        for i, (kind, ms) in enumerate(told)
    ]


ANSWER = events(
    (K.COMMENT, 60),
    (K.ROLE, 100),
    (K.REASONING, 120),
    (K.REASONING, 140),
    (K.PING, 150),
    (K.TEXT, 200),
    (K.TEXT, 230),
    (K.USAGE, 231),
    (K.DONE, 232),
)


def test_each_first_is_another_event() -> None:
    told = stream_timing(whole(0, sent=10, wait=45, events=ANSWER, stream_api="openai-chat", tokens=7))
    assert told is not None
    assert (told.first_byte_ns, told.first_event_ns, told.first_token_ns, told.first_visible_ns) == (
        ns(45),
        ns(90),
        ns(110),
        ns(190),
    )
    assert (told.last_content_ns, told.logical_end_ns) == (ns(220), ns(222))
    assert (told.events, told.token_events, told.tokens, told.api) == (9, 4, 7, "openai-chat")


def test_gaps_lie_between_token_bearing_events_only() -> None:
    told = stream_timing(whole(0, sent=10, events=ANSWER))
    assert told is not None
    assert told.gaps_ns == (ns(20), ns(60), ns(30))


def test_no_event_is_no_stream() -> None:
    assert stream_timing(whole(0, sent=10)) is None


def test_a_stream_without_its_mark_has_no_logical_end() -> None:
    told = stream_timing(whole(0, sent=10, events=ANSWER[:-1]))
    assert told is not None
    assert told.logical_end_ns is None


def test_only_pings_are_no_first_event() -> None:
    told = stream_timing(whole(0, sent=10, events=events((K.PING, 50), (K.COMMENT, 60))))
    assert told is not None
    assert (told.first_event_ns, told.first_token_ns, told.gaps_ns) == (None, None, ())


def test_without_the_request_there_is_nothing_to_count_from() -> None:
    orphan = whole(0, sent=10, events=ANSWER)
    orphan.request_first = None
    told = stream_timing(orphan)
    assert told is not None
    assert (told.first_byte_ns, told.first_event_ns, told.last_content_ns) == (None, None, None)
    assert told.gaps_ns == (ns(20), ns(60), ns(30))


def test_events_in_one_segment_are_one_chunk() -> None:
    burst = events((K.TEXT, 50), (K.TEXT, 50), (K.TEXT, 70))
    told = stream_timing(whole(0, sent=10, events=burst))
    assert told is not None
    assert (told.events, told.chunks) == (3, 2)
    assert moment(50).packet == burst[0].packet
