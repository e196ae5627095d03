"""Which of two frames of the two directions of an HTTP/2 connection came first, by columns: as ``frame_by_frame.decode`` takes their chunks."""

from __future__ import annotations

import numpy as np

from netdiag.protocols.http2.columns.tables import Direction
from netdiag.wire.tables import Int64

_ROW_BITS = 32


class Order:
    """Places of the frames of both sides in one order: larger is later."""

    def __init__(self, client: Direction, server: Direction) -> None:
        self._ranks = _merged(client.times.first_seen_at, server.times.first_seen_at)
        self.first_chunk = tuple(d.chunk_of(d.frames.begin) for d in (client, server))
        """Of each side's frames: the chunk with the first octet."""
        self.last_chunk = tuple(d.chunk_of(_last_octet(d)) for d in (client, server))
        """The chunk with the last one, which completes the frame."""

    def at(self, side: int, rows: Int64) -> Int64:
        """When frames of one side were complete."""
        return self._ranks[side][self.last_chunk[side][rows]] << _ROW_BITS | rows


def _last_octet(direction: Direction) -> Int64:
    return direction.frames.begin + direction.frames.length + 8


def _merged(client: Int64, server: Int64) -> tuple[Int64, Int64]:
    """Ranks of the chunks when always the direction goes on whose next chunk was seen first, the client where both were.

    A chunk goes before another direction's exactly when the latest instant up to it is not after the latest up to that one: whoever has
    the later one waits there until the other has passed.
    """
    upto_client, upto_server = np.maximum.accumulate(client), np.maximum.accumulate(server)
    return (
        np.arange(len(client)) + np.searchsorted(upto_server, upto_client, "left"),
        np.arange(len(server)) + np.searchsorted(upto_client, upto_server, "right"),
    )
