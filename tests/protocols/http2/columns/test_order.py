"""Frames of both directions in one order, against taking their chunks one after the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.http2.columns.order import Order
from netdiag.protocols.http2.columns.tables import ChunkTimes, Direction, Frames

FRAME_BYTES = 19
times = st.lists(st.integers(0, 12), min_size=1, max_size=8)
"""When each chunk was seen: a late segment makes them step back."""


def direction(seen: list[int], frames: int, chunk_bytes: int) -> Direction:
    """``frames`` frames of one size in chunks of another."""
    begin = np.arange(len(seen)) * chunk_bytes
    instants = np.array(seen, np.int64)
    nothing = np.zeros(len(seen), np.int64)
    return Direction(
        times=ChunkTimes(
            begin=begin,
            offset=begin,
            size=nothing + chunk_bytes,
            first_seen_at=instants,
            last_seen_at=instants,
            deliverable_at=instants,
            first_packet=nothing,
            last_packet=nothing,
        ),
        frames=Frames(
            begin=np.arange(frames) * FRAME_BYTES,
            length=np.full(frames, FRAME_BYTES - 9, np.int64),
            type=np.zeros(frames, np.uint8),
            flags=np.zeros(frames, np.uint8),
            stream=np.ones(frames, np.int32),
        ),
        codes=np.empty(0, np.int64),
        sections=[],
        updates=(np.empty(0, np.int64), np.empty(0, np.int64)),
        controls=[],
        bodies={},
    )


def one_by_one(client: list[int], server: list[int]) -> list[tuple[int, int]]:
    """(side, chunk): always the direction goes on whose next chunk was seen first, the client where both were."""
    sides, places, taken = (client, server), [0, 0], []
    while places[0] < len(client) or places[1] < len(server):
        left = [side for side in (0, 1) if places[side] < len(sides[side])]
        side = min(left, key=lambda one: (sides[one][places[one]], one))
        taken.append((side, places[side]))
        places[side] += 1
    return taken


@given(times, times)
def test_chunks_are_taken_as_they_were_seen(client: list[int], server: list[int]) -> None:
    order = Order(direction(client, len(client), FRAME_BYTES), direction(server, len(server), FRAME_BYTES))
    ranks = {
        (side, chunk): int(order.at(side, np.array([chunk]))[0])
        for side, seen in enumerate((client, server))
        for chunk in range(len(seen))
    }
    assert sorted(ranks, key=ranks.__getitem__) == one_by_one(client, server)


@given(st.integers(1, 40), st.integers(1, 12))
def test_a_frame_belongs_to_the_chunks_with_its_first_and_last_octet(chunk_bytes: int, frames: int) -> None:
    chunks = -(-frames * FRAME_BYTES // chunk_bytes)
    order = Order(direction([0] * chunks, frames, chunk_bytes), direction([0], 0, 1))
    assert order.first_chunk[0].tolist() == [i * FRAME_BYTES // chunk_bytes for i in range(frames)]
    assert order.last_chunk[0].tolist() == [((i + 1) * FRAME_BYTES - 1) // chunk_bytes for i in range(frames)]


def test_frames_of_one_chunk_stay_in_order() -> None:
    order = Order(direction([5], 3, 3 * FRAME_BYTES), direction([1, 9], 2, FRAME_BYTES))
    at = [*order.at(1, np.array([0])), *order.at(0, np.arange(3)), *order.at(1, np.array([1]))]
    assert at == sorted(at)
    assert len(set(at)) == 5
