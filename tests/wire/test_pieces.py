"""New octets of many directions on one line of keys."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.wire.pieces import Pieces, advance, pieces_of
from tests.support.conversation import CLIENT, SERVER, Conversation, Wire, interleaved


def talks() -> tuple[Conversation, Conversation]:
    """Two connections; the second one's server loses its middle segment for good."""
    first = Conversation().opens()
    first.client(b"GET /one")
    first.server(b"a" * 10)
    first.server(b"b" * 10)
    second = Conversation(client=("10.0.0.3", 40001)).opens()
    second.server(b"c" * 10)
    second.server(b"d" * 10, captured=False)
    second.server(b"e" * 10)
    return first, second


@pytest.fixture
def wire() -> Wire:
    return interleaved(*talks())


def key(pieces: Pieces, connection: int, side: int, offset: int) -> int:
    return (2 * connection + side) * pieces.span + offset


def test_keys_ascend_over_all_directions(wire: Wire) -> None:
    pieces = pieces_of(wire.buffer, wire.segments)
    assert pieces.stream.tolist() == [0, 1, 1, 3, 3]
    assert (np.diff(pieces.key) > 0).all()
    assert (pieces.end <= np.append(pieces.key[1:], pieces.end[-1])).all()


def test_octets_are_read_over_pieces_and_end_at_a_hole(wire: Wire) -> None:
    pieces = pieces_of(wire.buffer, wire.segments)
    assert pieces.read(1, key(pieces, 0, SERVER, 8), 4) == b"aabb"
    assert pieces.read(3, key(pieces, 1, SERVER, 5), 100) == b"ccccc"
    assert pieces.read(0, key(pieces, 0, CLIENT, 0), 100) == b"GET /one"


def test_a_key_outside_its_piece_reads_nothing(wire: Wire) -> None:
    pieces = pieces_of(wire.buffer, wire.segments)
    assert pieces.read(3, key(pieces, 1, SERVER, 15), 4) == b""
    assert pieces.read(len(pieces), key(pieces, 1, SERVER, 0), 4) == b""


def test_some_connections_alone(wire: Wire) -> None:
    chosen = np.array([1])
    alone, taken = pieces_of(wire.buffer, wire.segments, chosen), pieces_of(wire.buffer, wire.segments).of(chosen)
    assert alone.stream.tolist() == taken.stream.tolist() == [3, 3]
    whole = pieces_of(wire.buffer, wire.segments)
    assert whole.of(np.array([0, 1])) is whole


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 60)), max_size=20))
def test_advancing_finds_what_a_search_does(moves: list[tuple[int, int]]) -> None:
    wire = interleaved(*talks())
    pieces = pieces_of(wire.buffer, wire.segments)
    index = np.array([one for one, _ in moves], np.int64)
    position = pieces.key[index] + np.array([ahead for _, ahead in moves], np.int64)
    assert advance(pieces, index, position).tolist() == pieces.at_or_before(position).tolist()
