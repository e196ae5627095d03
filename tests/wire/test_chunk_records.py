"""Records out of chunks, however the octets were cut into chunks."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from netdiag.wire.chunk import Chunk
from netdiag.wire.chunk_records import record_views


def chunk(data: bytes, offset: int, at: int, *, missing_before: int = 0) -> Chunk:
    return Chunk(data, offset, at, at, at + 1, at, at, missing_before)


def record(kind: int, content: bytes) -> bytes:
    return bytes([kind, 3, 3]) + len(content).to_bytes(2, "big") + content


STREAM = record(22, b"hello") + record(20, b"\x01") + record(23, b"x" * 300) + record(23, b"")


@given(st.lists(st.integers(1, len(STREAM) - 1), unique=True).map(sorted))
def test_cutting_the_stream_differently_gives_the_same_records(cuts: list[int]) -> None:
    places = [0, *cuts, len(STREAM)]
    chunks = [chunk(STREAM[a:b], a, i) for i, (a, b) in enumerate(pairwise(places))]
    views = list(record_views(chunks))
    assert [(v.content_type, v.fragment()) for v in views] == [
        (22, b"hello"),
        (20, b"\x01"),
        (23, b"x" * 300),
        (23, b""),
    ]
    for view in views:
        first = next(c for c in chunks if c.offset + len(c.data) > view.stream_offset)
        last = next(c for c in chunks if c.offset + len(c.data) >= view.stream_offset + 5 + view.length)
        assert (view.first_seen_at, view.deliverable_at) == (first.first_seen_at, last.deliverable_at)
        assert (view.first_packet, view.last_packet) == (first.first_packet, last.last_packet)


def test_a_record_cut_by_the_end_is_not_deliverable() -> None:
    (view,) = record_views([chunk(record(23, b"abcdef")[:-2], 0, 7)])
    assert (view.missing_bytes, view.deliverable_at, view.fragment()) == (2, None, b"abcd")


def test_records_end_where_octets_are_missing() -> None:
    views = list(record_views([chunk(record(22, b"a"), 0, 1), chunk(record(23, b"b"), 50, 2, missing_before=44)]))
    assert [v.content_type for v in views] == [22]


def test_what_is_no_record_ends_them() -> None:
    assert [v.fragment() for v in record_views([chunk(record(22, b"a") + b"GET / HTTP/1.1\r\n", 0, 1)])] == [b"a"]


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_random_octets_never_raise(pieces: list[bytes]) -> None:
    offset, chunks = 0, []
    for i, piece in enumerate(pieces):
        chunks.append(chunk(piece, offset, i))
        offset += len(piece)
    assert all(v.length >= 0 for v in record_views(chunks))
