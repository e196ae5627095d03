"""Connections in clear that speak regular HTTP from their first octet to their last: their exchanges in brief.

Nothing else is made per connection, and nothing per packet.
"""

from __future__ import annotations

import numpy as np

from netdiag.analysis.brief import BriefTurns, Chunks, Instants, rows_of, told
from netdiag.plain import plain
from netdiag.protocols.brief_turn import Octets
from netdiag.wire.stream_order import in_stream_order, streams_of
from netdiag.wire.tables import NONE, Bool, Buffer, Segments

MOST_BYTES = 4 << 20
"""A direction with more octets is not put together in one piece; what a connection costs does not matter beside them."""


def clear_turns(buffer: Buffer, segments: Segments, candidates: Bool) -> BriefTurns:
    """The exchanges of those candidates (by connection number) that are regular."""
    streams = _Streams.of(segments, len(candidates))
    whole = streams.whole.reshape(-1, 2).all(axis=1) & candidates
    return BriefTurns.of(row for i in np.flatnonzero(whole).tolist() for row in _rows(buffer, streams, i))


def _rows(buffer: Buffer, streams: _Streams, connection: int) -> list[tuple[int, ...]]:
    sides = 2 * connection, 2 * connection + 1
    said = told(*(streams.octets(buffer, side) for side in sides))
    if said is None:
        return []
    client, server = (streams.chunks(side) for side in sides)
    return rows_of(connection, said, client, server, (NONE, NONE))


@plain(frozen=True, slots=True, kw_only=True)
class _Streams:
    """The new octets of every direction: row by row in stream order."""

    at: Instants
    bounds: list[int]
    """``bounds[s]:bounds[s + 1]`` are the pieces of stream ``s``."""
    begins: list[int]
    stops: list[int]
    """Where each piece lies in the buffer."""
    ends: list[int]
    """Where each piece ends in its stream."""
    whole: Bool
    """Of each stream: it has octets, they begin at its first, none is missing, all were deliverable, and they are not too many."""

    @classmethod
    def of(cls, segments: Segments, connections: int) -> _Streams:
        rows = in_stream_order(segments)
        new = segments.new_offset[rows]
        ahead = new - segments.stream_offset[rows]
        size = segments.length[rows] - ahead
        begins = segments.payload_offset[rows] + ahead
        stream = streams_of(segments)[rows]
        bounds = np.searchsorted(stream, np.arange(2 * connections + 1))
        follows = np.append(0, (new + size)[:-1])
        follows[bounds[:-1][bounds[:-1] < len(rows)]] = 0
        odd = (
            (new != follows) | (segments.captured_bytes[rows] - ahead < size) | (segments.deliverable_at[rows] == NONE)
        )
        odd |= new + size > MOST_BYTES
        seen_at = segments.seen_at[rows].tolist()
        times = segments.deliverable_at[rows].tolist(), segments.packet[rows].tolist()
        return cls(
            at=Instants(seen_at, seen_at, *times),
            bounds=bounds.tolist(),
            begins=begins.tolist(),
            stops=(begins + size).tolist(),
            ends=(new + size).tolist(),
            whole=(np.diff(bounds) > 0) & (np.bincount(stream[odd], minlength=2 * connections) == 0),
        )

    def octets(self, buffer: Buffer, stream: int) -> Octets:
        """All of one stream."""
        first, last = self.bounds[stream], self.bounds[stream + 1]
        places = zip(self.begins[first:last], self.stops[first:last], strict=True)
        return Octets(b"".join([buffer[begin:stop] for begin, stop in places]), self.ends[first:last])

    def chunks(self, stream: int) -> Chunks:
        """When they came."""
        return Chunks(range(self.bounds[stream], self.bounds[stream + 1]), self.at)
