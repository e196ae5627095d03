"""The new octets of every direction in stream order."""

from __future__ import annotations

import numpy as np

from netdiag.wire.kept import kept_by_argument
from netdiag.wire.tables import Int64, Segments, TlsRecords


def in_stream_order(segments: Segments) -> Int64:
    """Rows of ``segments`` that bring new octets, by (connection, direction, stream offset). Their new octets are disjoint."""
    rows = np.flatnonzero(segments.new_offset < segments.stream_offset + segments.length)
    stream = streams_of(segments)[rows]
    offset = segments.new_offset[rows]
    disordered = (offset[1:] < offset[:-1]) & (stream[1:] == stream[:-1])
    if not disordered.any():
        return rows
    return rows[np.lexsort((offset, stream))]


@kept_by_argument
def streams_of(table: Segments | TlsRecords) -> Int64:
    """``2 × connection + direction`` of each row; computed once, as most passes over a table begin with it."""
    return table.connection.astype(np.int64) * 2 + table.direction


def bounds_of(table: Segments | TlsRecords, connections: int) -> Int64:
    """``[2n + 1]``: the rows of direction ``d`` of connection ``c`` are ``bounds[2c + d]:bounds[2c + d + 1]``."""
    counts = np.bincount(streams_of(table), minlength=2 * connections)
    return np.concatenate(([0], np.cumsum(counts[: 2 * connections])))
