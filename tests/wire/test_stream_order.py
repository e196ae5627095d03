"""New octets in stream order."""

from __future__ import annotations

import numpy as np
import pytest

from netdiag.wire.stream_order import bounds_of, in_stream_order, streams_of
from netdiag.wire.streams import rows_of
from tests.support.conversation import CLIENT, SERVER, Conversation, Wire


@pytest.fixture
def wire() -> Wire:
    """A lost segment of the server comes last, and one of the client twice."""
    talk = Conversation().opens()
    asked = talk.client(b"GET")
    lost = talk.server(b"a" * 10, captured=False)
    talk.server(b"b" * 10)
    talk.after(300).again(asked)
    talk.after(300).again(lost)
    return talk.wire()


def test_rows_are_by_stream_and_offset_and_bring_new_octets(wire: Wire) -> None:
    part = wire.segments.take(in_stream_order(wire.segments))
    assert list(zip(part.direction.tolist(), part.new_offset.tolist(), strict=True)) == [(0, 0), (1, 0), (1, 10)]
    assert part.packet.tolist() == [4, 7, 5]


def test_a_segment_without_new_octets_is_left_out(wire: Wire) -> None:
    assert len(wire.segments) == 4
    assert len(in_stream_order(wire.segments)) == 3


def test_bounds_are_the_rows_of_each_direction(wire: Wire) -> None:
    bounds = bounds_of(wire.segments, 1)
    assert [slice(*pair) for pair in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)] == [
        rows_of(wire.segments, 0, side) for side in (CLIENT, SERVER)
    ]


def test_streams_count_directions(wire: Wire) -> None:
    assert streams_of(wire.segments).tolist() == wire.segments.direction.tolist()
    assert np.array_equal(bounds_of(wire.segments, 3)[2:], [4, 4, 4, 4, 4])
