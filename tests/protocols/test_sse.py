"""Event streams: line ends, splits, comments, limits (WHATWG HTML 9.2.6)."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.ndjson import JsonLines
from netdiag.protocols.sse import MAX_LINE_BYTES, EventStream, ServerSentEvent


def parse(*pieces: bytes) -> list[ServerSentEvent]:
    stream = EventStream()
    return [event for piece in pieces for event in stream.feed(piece)]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_each_line_end_dispatches(end: bytes) -> None:
    octets = end.join([b"event: ping", b"data: one", b"data:two", b"id: 7", b"", b"data", b"", b""])
    assert [(e.type, e.data) for e in parse(octets)] == [("ping", b"one\ntwo"), ("", b"")]


def test_a_byte_order_mark_is_ignored_even_when_split() -> None:
    assert [e.data for e in parse(b"\xef", b"\xbb\xbfdata: x\n\n")] == [b"x"]
    assert [e.data for e in parse(b"\xef\xbb\xbf", b"data: x\n\n")] == [b"x"]


def test_an_event_is_dispatched_by_the_cr_of_a_split_crlf() -> None:
    stream = EventStream()
    assert stream.feed(b"data: x\r\n\r") != []
    assert stream.feed(b"\ndata: y\r\n\r\n")[0].data == b"y"


def test_comments_are_events_at_their_own_line_end() -> None:
    stream = EventStream()
    assert [e.comment for e in stream.feed(b": keep-alive\n")] == [True]
    assert stream.feed(b"\n") == []
    assert [e.comment for e in stream.feed(b": OPENROUTER PROCESSING\n\ndata: x\n\n")] == [True, False]


def test_a_comment_inside_an_event_belongs_to_it() -> None:
    assert [(e.comment, e.data) for e in parse(b"data: a\n: note\ndata: b\n\n")] == [(False, b"a\nb")]


def test_sizes_are_octets_on_the_wire_and_cover_everything() -> None:
    octets = b"event: a\r\ndata: 1\r\n\r\ndata: 22\r\n\r\n"
    assert [e.size_bytes for e in parse(octets)] == [21, 12]


def test_an_unfinished_event_is_none() -> None:
    assert parse(b"data: x\n") == []
    assert parse(b"data: x") == []


def test_a_line_above_the_limit_comes_without_its_text_and_without_memory() -> None:
    stream = EventStream()
    piece = b"x" * 65_536
    tracemalloc.start()
    assert stream.feed(b"data: ") == []
    for _ in range(200):
        assert stream.feed(piece) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    (event,) = stream.feed(b"\n\n")
    assert event.data is None
    assert event.size_bytes == 6 + 200 * 65_536 + 2 > MAX_LINE_BYTES
    assert peak < 4 * MAX_LINE_BYTES
    assert [e.data for e in stream.feed(b"data: next\n\n")] == [b"next"]


_LINES = st.sampled_from(
    [b"data: a", b"data:\xc3\xa9\xe2\x82\xac", b"event: ping", b": c", b"", b"", b"id", b"retry: 5", b"x"]
)


@given(
    st.lists(st.tuples(_LINES, st.sampled_from([b"\n", b"\r", b"\r\n"])), max_size=20),
    st.lists(st.integers(0, 200), max_size=10),
)
def test_split_anywhere_the_events_are_the_same(lines: list[tuple[bytes, bytes]], cuts: list[int]) -> None:
    octets = b"".join(a + b for a, b in lines)
    edges = [0, *sorted(c for c in cuts if c < len(octets)), len(octets)]
    pieces = [octets[a:b] for a, b in pairwise(edges)]

    def facts(events: list[ServerSentEvent]) -> list[tuple[object, ...]]:
        return [(e.type, e.data, e.comment) for e in events]

    assert facts(parse(*pieces)) == facts(parse(octets))
    assert facts(parse(*[octets[i : i + 1] for i in range(len(octets))])) == facts(parse(octets))


@given(st.lists(st.binary(max_size=30), max_size=10))
def test_random_octets_raise_nothing(pieces: list[bytes]) -> None:
    events, whole = parse(*pieces), parse(b"".join(pieces))
    assert [(e.type, e.data, e.comment) for e in events] == [(e.type, e.data, e.comment) for e in whole]


def test_json_lines_with_keep_alives_and_record_separators() -> None:
    lines = JsonLines()
    assert lines.feed(b'{"a":1}\n\n\x1e{"b"') == [(b'{"a":1}', 8), (b"", 1)]
    assert lines.feed(b":2}\r\n") == [(b'{"b":2}', 10)]


@given(
    st.lists(
        st.sampled_from(
            [
                b"data: x\n\n",
                b"data: \n\n",
                b"data:y\n\n",
                b"data: a\rb\n\n",
                b": c\n",
                b"event: e\n",
                b"\n",
                b"data: z",
            ]
        )
    )
)
def test_events_that_come_whole_are_as_those_that_come_in_pieces(pieces: list[bytes]) -> None:
    assert parse(*pieces) == parse(*(bytes([octet]) for octet in b"".join(pieces)))
