"""The tables of one direction of a regular HTTP/2 connection: chunks, frames, and what goes with them."""

from __future__ import annotations

import numpy as np

from netdiag.plain import plain
from netdiag.protocols.event_body import EventBody
from netdiag.protocols.http2.section import Section
from netdiag.wire.chunk import Moment
from netdiag.wire.tables import NONE, Int32, Int64, Table, UInt8


@plain(frozen=True, slots=True, kw_only=True)
class ChunkTimes(Table):
    """One row per chunk (see ``Chunk``)."""

    begin: Int64
    """Of its first octet, counted from the first chunk."""
    offset: Int64
    size: Int64
    first_seen_at: Int64
    last_seen_at: Int64
    deliverable_at: Int64
    first_packet: Int64
    last_packet: Int64

    def first(self, row: int) -> Moment | None:
        """The moment of an octet that is counted by its chunk's first; None for the row NONE."""
        return None if row < 0 else self._moment(row, int(self.first_seen_at[row]), int(self.first_packet[row]))

    def last(self, row: int) -> Moment | None:
        """The same by its chunk's last octet."""
        if row < 0:
            return None
        seen_at = int(self.last_seen_at[row])
        one_instant = seen_at == self.first_seen_at[row]
        return self._moment(row, seen_at, int((self.first_packet if one_instant else self.last_packet)[row]))

    def _moment(self, row: int, seen_at: int, packet: int) -> Moment:
        return Moment(
            seen_at,
            int(self.deliverable_at[row]),
            None if packet == NONE else packet,
            None if packet == NONE else int(self.last_packet[row]),
            int(self.offset[row]),
            int(self.size[row]),
        )


@plain(frozen=True, slots=True, kw_only=True)
class Frames(Table):
    """One row per frame, in order."""

    begin: Int64
    """Of its header, counted from the first chunk."""
    length: Int64
    type: UInt8
    flags: UInt8
    stream: Int32


@plain(frozen=True, slots=True, kw_only=True)
class Control:
    """A frame about streams or the connection."""

    frame: int
    """Its row."""
    type: int
    flags: int
    stream_id: int
    payload: bytes


@plain(frozen=True, slots=True, kw_only=True)
class Direction:
    """Everything one side said."""

    times: ChunkTimes
    frames: Frames
    codes: Int64
    """Of each HEADERS frame: the place of its section in ``sections``."""
    sections: list[Section]
    updates: tuple[Int64, Int64]
    """WINDOW_UPDATE frames: row and increment."""
    controls: list[Control]
    bodies: dict[int, tuple[int, EventBody]]
    """Answers whose content was read, by stream: the row of the head, and what its reader found."""

    def chunk_of(self, offset: Int64) -> Int32:
        """The chunk of each offset; both ascend."""
        edges = np.append(np.searchsorted(offset, self.times.begin[1:]), len(offset))
        counts = np.diff(edges, prepend=0)
        return np.repeat(np.arange(len(counts), dtype=np.int32), counts)
