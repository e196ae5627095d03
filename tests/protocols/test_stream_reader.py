"""Octets pulled out of chunks: the same however the stream is cut, with the moments of what was read, and never over a gap."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.stream_reader import StreamReader, end_of_head
from netdiag.wire.chunk import Chunk, Moment
from tests.support.http_bytes import MS, recut, stream

TEXT = b"one\r\ntwo\r\n\r\nthree\n\nfour"
cuts = st.lists(st.integers(1, len(TEXT) - 1), max_size=6).map(lambda found: sorted(set(found)))


def reader(*pieces: tuple[float, bytes | str | int]) -> StreamReader:
    return StreamReader(stream(*pieces))


class Kept:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.octets = b""
        self.at: list[int] = []

    def feed(self, octets: bytes, moment: Moment) -> None:
        self.octets += octets
        self.at.append(moment.seen_at // MS)


@given(cuts)
def test_reading_up_to_a_mark_does_not_depend_on_the_cuts(where: list[int]) -> None:
    one = StreamReader(recut(stream((0, TEXT)), where))
    lines = [one.read_until(b"\n", 1000) for _ in range(5)]
    assert lines == [b"one\r\n", b"two\r\n", b"\r\n", b"three\n", b"\n"]
    assert one.offset == TEXT.index(b"four")
    assert one.read_until(b"\n", 1000) is None
    assert one.ended


@given(cuts, st.integers(0, len(TEXT)))
def test_skipping_reads_as_many_octets_as_asked(where: list[int], count: int) -> None:
    kept = Kept()
    one = StreamReader(recut(stream((0, TEXT)), where))
    assert one.skip(count, kept) == (count, 0)
    assert kept.octets == TEXT[:count]
    assert b"".join(chunk.data for chunk in one.rest()) == TEXT[count:]


def test_a_limit_ends_the_search_for_a_mark() -> None:
    assert reader((0, b"aaaa"), (1, b"aaaa"), (2, b"a\n")).read_until(b"\n", 5) is None


def test_nothing_is_read_over_a_gap_until_it_is_crossed() -> None:
    one = reader((0, b"before"), (1, 4), (2, b"after\n"))
    assert one.read_until(b"\n", 1000) is None
    assert (one.gap, one.more(), one.ended) == (4, False, False)
    one.cross_gap()
    assert (one.gap, one.crossed_gap, one.offset, one.at_chunk_start) == (None, True, 10, True)
    assert one.read_until(b"\n", 1000) == b"after\n"


@pytest.mark.parametrize(("count", "expected"), [(6, (6, 0)), (10, (6, 4)), (12, (8, 4)), (9, (6, 0))])
def test_skipping_crosses_a_gap_that_lies_inside(count: int, expected: tuple[int, int]) -> None:
    assert reader((0, b"before"), (1, 4), (2, b"after")).skip(count) == expected


def test_moments_are_those_of_the_chunks() -> None:
    one = reader((5, b"GET /"), (9, b" HTTP/1.1\r\n"))
    assert one.more()
    assert one.first_moment().seen_at == 5 * MS
    assert one.read_until(b"\n", 1000) == b"GET / HTTP/1.1\r\n"
    assert one.last_moment().seen_at == 9 * MS


def test_no_moment_before_the_first_octet() -> None:
    with pytest.raises(RuntimeError):
        reader((0, b"x")).first_moment()


def test_a_look_at_the_chunk_reads_nothing() -> None:
    one = reader((0, b"\r\nHTTP/1.1 200"))
    assert one.more()
    one.skip_any(b"\r\n")
    assert one.matches(re.compile(rb"HTTP/1\.1"))
    assert (one.next_octet(), one.rest_of_chunk(), one.offset) == (ord("H"), b"HTTP/1.1 200", 2)
    assert one.drop_chunk() == 12
    assert not one.more()


def test_what_is_left_are_the_chunks_behind() -> None:
    one = reader((0, b"abc"), (1, 2), (2, b"def"))
    assert one.more()
    assert one.take(1) == b"a"
    left = list(one.rest())
    assert [(chunk.data, chunk.offset, chunk.missing_before) for chunk in left] == [(b"bc", 1, 0), (b"def", 5, 2)]


@given(st.lists(st.sampled_from([b"\n", b"\r\n", b"a", b"\r"]), max_size=12).map(b"".join), st.integers(0, 12))
def test_a_head_ends_after_its_first_empty_line(octets: bytes, start: int) -> None:
    """RFC 9112 section 2.2: bare LF counts, also mixed."""
    match = re.compile(rb"\n\r?\n").search(octets, start)
    assert end_of_head(octets, start) == (match.end() if match else -1)


def test_a_head_is_taken_only_when_the_chunk_has_it_whole() -> None:
    one = StreamReader([Chunk(b"a: 1\r\n\r\nbody", 0, 0, 0, 0, 1, 1), Chunk(b"b: 2\r\n", 12, 1, 1, 1, 2, 2)])
    assert one.more()
    assert one.take_head() == b"a: 1\r\n\r\n"
    one.drop_chunk()
    assert one.more()
    assert one.take_head() is None
    assert one.rest_of_chunk() == b"b: 2\r\n"
