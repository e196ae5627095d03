"""Connections in clear that speak regular HTTP/1 from their first octet to their last: their exchanges in brief.

Nothing else is made per connection, and nothing per packet.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from netdiag.analysis.brief import CODES, BriefTurns
from netdiag.plain import plain
from netdiag.protocols.http1_regular import Octets, RegularTurn, turns
from netdiag.wire.stream_order import in_stream_order, streams_of
from netdiag.wire.tables import NONE, Bool, Buffer, Int64, Segments

MOST_BYTES = 4 << 20
"""A direction with more octets is not put together in one piece; what a connection costs does not matter beside them."""
_COLUMNS = ("connection", "ordinal", *RegularTurn._fields)


def clear_turns(buffer: Buffer, segments: Segments, candidates: Bool) -> BriefTurns:
    """The exchanges of those candidates (by connection number) that are regular."""
    streams = _Streams.of(segments, len(candidates))
    whole = streams.whole.reshape(-1, 2).all(axis=1) & candidates
    found = [row for i in np.flatnonzero(whole).tolist() for row in _rows(buffer, streams, i)]
    return _timed(np.array(found, np.int64).reshape(-1, len(_COLUMNS)), segments, streams)


@plain(frozen=True, slots=True, kw_only=True)
class _Streams:
    """The new octets of every direction: row by row in stream order."""

    rows: Int64
    """Of the segments."""
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
        return cls(
            rows=rows,
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


def _rows(buffer: Buffer, streams: _Streams, connection: int) -> Iterator[tuple[int, ...]]:
    """The values of ``_COLUMNS`` of each turn, chunks by their places in the streams' rows."""
    found = turns(streams.octets(buffer, 2 * connection), streams.octets(buffer, 2 * connection + 1))
    asks, answers = streams.bounds[2 * connection : 2 * connection + 2]
    for ordinal, turn in enumerate(found or ()):
        protocol, status, *chunks = turn
        asked = [asks + chunk for chunk in chunks[:2]]
        answered = [chunk if chunk == NONE else answers + chunk for chunk in chunks[2:]]
        yield connection, ordinal, CODES[protocol], status, *asked, *answered


def _timed(table: Int64, segments: Segments, streams: _Streams) -> BriefTurns:
    """Instants in place of chunks. Connections in which an answer came before its request are left out: it answers another one."""
    seen_at, packet = segments.seen_at[streams.rows], segments.packet[streams.rows]
    deliverable_at = np.append(segments.deliverable_at[streams.rows], NONE)
    connection, asked, answered = table[:, 0], table[:, 4], table[:, 6]
    early = (packet[answered] < packet[asked]) & (seen_at[answered] < seen_at[asked])
    found = BriefTurns(
        connection=connection,
        ordinal=table[:, 1],
        protocol=table[:, 2],
        status=table[:, 3],
        request_first_at=seen_at[asked],
        request_last_at=seen_at[table[:, 5]],
        response_first_at=deliverable_at[answered],
        response_last_at=deliverable_at[table[:, 7]],
        first_event_at=deliverable_at[table[:, 8]],
        first_token_at=deliverable_at[table[:, 9]],
        first_visible_at=deliverable_at[table[:, 10]],
        client_hello_at=np.full(len(table), NONE),
        finished_at=np.full(len(table), NONE),
    )
    return found.take(~np.isin(connection, connection[early])) if early.any() else found
