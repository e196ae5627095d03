"""Connections in clear that speak regular HTTP from their first octet to their last: their exchanges in brief.

Nothing else is made per connection, and nothing per packet.
"""

from __future__ import annotations

import numpy as np

from netdiag.analysis.brief import BriefTurns, Chunks, Instants, rows_of, told
from netdiag.plain import plain
from netdiag.protocols.brief_turn import Octets
from netdiag.wire.stream_order import in_stream_order, streams_of
from netdiag.wire.tables import NONE, Bool, Buffer, Int64, Segments

MOST_BYTES = 4 << 20
"""A direction with more octets is not put together in one piece; what a connection costs does not matter beside them."""


def clear_turns(buffer: Buffer, segments: Segments, candidates: Bool) -> BriefTurns:
    """The exchanges of those candidates (by connection number) that are regular."""
    rows, whole = _whole(segments, candidates)
    streams = _Streams.of(segments, rows, len(candidates))
    return BriefTurns.of(row for i in np.flatnonzero(whole).tolist() for row in _rows(buffer, streams, i))


def _whole(segments: Segments, candidates: Bool) -> tuple[Int64, Bool]:
    """Which candidates' directions both have octets that begin at their first, none missing, all deliverable, and not too many; and the
    rows of their segments with new octets, in stream order."""
    rows = in_stream_order(segments)
    stream, new = streams_of(segments)[rows], segments.new_offset[rows]
    ahead = new - segments.stream_offset[rows]
    end = segments.stream_offset[rows] + segments.length[rows]
    expected = np.where(np.diff(stream, prepend=NONE) == 0, np.append(0, end[:-1]), 0)
    odd = (new != expected) | (segments.deliverable_at[rows] == NONE) | (end > MOST_BYTES)
    odd |= segments.captured_bytes[rows] - ahead < end - new
    streams = 2 * len(candidates)
    good = (np.bincount(stream, minlength=streams) > 0) & (np.bincount(stream[odd], minlength=streams) == 0)
    whole: Bool = good.reshape(-1, 2).all(axis=1) & candidates
    return rows[whole[stream >> 1]], whole


def _rows(buffer: Buffer, streams: _Streams, connection: int) -> list[tuple[int, ...]]:
    sides = 2 * connection, 2 * connection + 1
    said = told(*(streams.octets(buffer, side) for side in sides))
    if said is None:
        return []
    client, server = (streams.chunks(side) for side in sides)
    return rows_of(connection, said, client, server, (NONE, NONE))


@plain(frozen=True, slots=True, kw_only=True)
class _Streams:
    """The new octets of some directions: piece by piece in stream order, as Python's numbers."""

    at: Instants
    bounds: list[int]
    """``bounds[s]:bounds[s + 1]`` are the pieces of stream ``s``."""
    begins: list[int]
    stops: list[int]
    """Where each piece lies in the buffer."""
    ends: list[int]
    """Where each piece ends in its stream."""

    @classmethod
    def of(cls, segments: Segments, rows: Int64, connections: int) -> _Streams:
        """``rows`` of the segments, in stream order."""
        ahead = segments.new_offset[rows] - segments.stream_offset[rows]
        begins, end = segments.payload_offset[rows] + ahead, segments.stream_offset[rows] + segments.length[rows]
        seen_at = segments.seen_at[rows].tolist()
        times = segments.deliverable_at[rows].tolist(), segments.packet[rows].tolist()
        return cls(
            at=Instants(seen_at, seen_at, *times),
            bounds=np.searchsorted(streams_of(segments)[rows], np.arange(2 * connections + 1)).tolist(),
            begins=begins.tolist(),
            stops=(begins + segments.length[rows] - ahead).tolist(),
            ends=end.tolist(),
        )

    def octets(self, buffer: Buffer, stream: int) -> Octets:
        """All of one stream."""
        first, last = self.bounds[stream], self.bounds[stream + 1]
        places = zip(self.begins[first:last], self.stops[first:last], strict=True)
        return Octets(b"".join([buffer[begin:stop] for begin, stop in places]), self.ends[first:last])

    def chunks(self, stream: int) -> Chunks:
        """When they came."""
        return Chunks(range(self.bounds[stream], self.bounds[stream + 1]), self.at)
