"""Intervals of time per direction."""

from __future__ import annotations

import numpy as np

from netdiag.wire.tables import Int64


def union(stream: Int64, started_at: Int64, ended_at: Int64) -> Int64:
    """Rows that begin a merged interval and the merged ends, as ``[k, 3]``: (row of the first, row of the last to end, total rows).

    Overlapping and touching intervals of one direction are one. Intervals may come in any order.
    """
    order = np.lexsort((ended_at, started_at, stream))
    merged: list[tuple[int, int, int]] = []
    stop = 0
    for row in order.tolist():
        begin, end = int(started_at[row]), int(ended_at[row])
        if merged and int(stream[merged[-1][0]]) == int(stream[row]) and begin <= stop:
            first, last, rows = merged[-1]
            merged[-1] = (first, row if end > stop else last, rows + 1)
            stop = max(stop, end)
        else:
            merged.append((row, row, 1))
            stop = end
    return np.array(merged, np.int64).reshape(-1, 3)
