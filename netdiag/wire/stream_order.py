"""The new octets of every direction in stream order."""

from __future__ import annotations

import numpy as np

from netdiag.wire.tables import Int64, Segments


def in_stream_order(segments: Segments) -> Int64:
    """Rows of ``segments`` that bring new octets, by (connection, direction, stream offset). Their new octets are disjoint."""
    rows = np.flatnonzero(segments.new_offset < segments.stream_offset + segments.length)
    stream = streams_of(segments)[rows]
    offset = segments.new_offset[rows]
    disordered = (offset[1:] < offset[:-1]) & (stream[1:] == stream[:-1])
    if not disordered.any():
        return rows
    return rows[np.lexsort((offset, stream))]


def streams_of(segments: Segments) -> Int64:
    """``2 × connection + direction`` of each row."""
    return segments.connection.astype(np.int64) * 2 + segments.direction
