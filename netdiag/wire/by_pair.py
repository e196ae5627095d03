"""Packets of one pair of endpoints together, in file order inside."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netdiag.wire.tables import Bool, Int64, UInt64

_MULTIPLIERS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
"""Odd: every bit of an endpoint moves the upper half of the product."""
_HALF = np.uint64(32)


def by_pair(low: UInt64, high: UInt64) -> tuple[Int64, Bool]:
    """A stable order in which equal pairs of keys stand together, and where in it another pair begins.

    Sorted by 16 bits of a hash at a time, which numpy does without comparing; pairs that have the same hash are sorted by themselves.
    """
    mixed = low * _MULTIPLIERS[0] ^ high * _MULTIPLIERS[1]
    digits = mixed.view(np.uint16).reshape(-1, 4)
    order = np.argsort(digits[:, 2], kind="stable")
    order = order[np.argsort(digits[:, 3][order], kind="stable")]
    hashes = (mixed >> _HALF)[order]
    new, same_hash = _changes(low[order], high[order]), ~_changes(hashes)
    mistaken = new & same_hash
    if mistaken.any():
        _told_apart(order, np.cumsum(~same_hash), mistaken, low, high)
        new = _changes(low[order], high[order])
    return order, new


def _changes(*columns: NDArray[Any]) -> Bool:
    """Of each row: the first of all, or another than the one before."""
    changed = np.ones(len(columns[0]), np.bool_)
    changed[1:] = columns[0][1:] != columns[0][:-1]
    for column in columns[1:]:
        changed[1:] |= column[1:] != column[:-1]
    return changed


def _told_apart(order: Int64, run: Int64, mistaken: Bool, low: UInt64, high: UInt64) -> None:
    """Sort, in place, the runs of one hash that hold several pairs."""
    several = np.zeros(int(run[-1]) + 1, np.bool_)
    several[run[mistaken]] = True
    places = np.flatnonzero(several[run])
    rows = order[places]
    order[places] = rows[np.lexsort((high[rows], low[rows], run[places]))]
