"""Octets with their times: the moments of their ends."""

from __future__ import annotations

from dataclasses import replace

from netdiag.wire.chunk import Chunk, Moment

RECORD = Chunk(b"x" * 30, 100, 10, 25, 40, 3, 5)
"""Spread over several packets, and usable only when an earlier hole was filled."""
SEGMENT = Chunk(b"x" * 30, 100, 10, 10, 40, 3, 5)


def test_as_a_beginning_octets_count_from_their_first_packet() -> None:
    first = RECORD.first_moment()
    assert (first.seen_at, first.deliverable_at, first.packet, first.delivered_by) == (10, 40, 3, 5)


def test_as_an_end_they_count_from_the_packet_with_the_last_octet() -> None:
    assert (RECORD.last_moment().seen_at, RECORD.last_moment().packet) == (25, 5)
    assert (SEGMENT.last_moment().seen_at, SEGMENT.last_moment().packet) == (10, 3)


def test_without_another_packet_the_octets_own_delivered_them() -> None:
    assert Moment(1, 2, 7).delivered_by == 7
    assert Moment(1, 2, 7, completed_by=9).delivered_by == 9


def test_how_a_stream_is_cut_is_no_part_of_when_something_happened() -> None:
    assert RECORD.first_moment() == replace(RECORD, data=b"", offset=0).first_moment()
    assert len({Moment(1, 2, 3, chunk_offset=4), Moment(1, 2, 3, chunk_offset=5)}) == 1
