"""Holes in a direction's octets, and which later packet filled which part of them.

Only packets that jump over octets or come from before the edge are walked, one by one and in file order; everything else is vectorised
elsewhere. A hole is the range of octets that a packet jumped over.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass, field

import numpy as np

from netdiag.plain import plain
from netdiag.wire.sequence import SequenceSpace
from netdiag.wire.tables import NONE, Int64

MAX_OPEN_HOLES = 16_384
"""Per direction. A peer could open one with every packet; beyond this the oldest is no longer watched."""


@dataclass(slots=True)
class Hole:
    """Octets ``begin:end`` that the packet in ``after_row`` jumped over."""

    direction: int
    begin: int
    end: int
    after_row: int
    filled_row: int = NONE
    """The packet that filled its last part; NONE while a part is missing."""


@plain(slots=True)
class Fills:
    """What the packets from before the edge brought that was new: ``ranges[row]`` are disjoint, ascending (begin, end)."""

    ranges: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    first_hole: dict[int, Hole] = field(default_factory=dict)
    """The hole whose first part a packet filled, by row."""
    holes: list[Hole] = field(default_factory=list)
    """All, in file order of ``after_row`` within each direction."""


def find_holes(sequence: SequenceSpace, starts: Int64, direction: Int64) -> Fills:
    """All holes of all directions. ``direction`` is that of each row."""
    fills = Fills()
    jumps = sequence.occupies & (sequence.begin > sequence.edge)
    if not jumps.any():
        return fills
    affected = np.zeros(len(starts) - 1, np.bool_)
    affected[direction[jumps]] = True
    events = np.flatnonzero((jumps | (sequence.occupies & (sequence.begin < sequence.edge))) & affected[direction])
    bounds = np.flatnonzero(np.diff(direction[events])) + 1
    for rows in np.split(events, bounds):
        _walk(
            fills,
            int(direction[rows[0]]),
            zip(
                rows.tolist(),
                sequence.begin[rows].tolist(),
                sequence.end[rows].tolist(),
                sequence.edge[rows].tolist(),
                strict=True,
            ),
        )
    return fills


def _walk(fills: Fills, direction: int, events: zip[tuple[int, int, int, int]]) -> None:
    parts: list[tuple[int, int, int]] = []  # (begin, end, index of the hole) of what is still missing
    missing: dict[int, int] = {}
    for row, begin, end, edge in events:
        if begin > edge:
            if len(parts) >= MAX_OPEN_HOLES:
                parts.pop(0)
            missing[len(fills.holes)] = 1
            parts.append((edge, begin, len(fills.holes)))
            fills.holes.append(Hole(direction, edge, begin, row))
            continue
        new = _fill(parts, missing, fills, row, begin, min(end, edge))
        if end > edge and new:
            new.append((edge, end))
        if new:
            fills.ranges[row] = _merged(new)


def _fill(
    parts: list[tuple[int, int, int]], missing: dict[int, int], fills: Fills, row: int, begin: int, end: int
) -> list[tuple[int, int]]:
    """Take ``begin:end`` out of the missing parts; what of it was missing."""
    new: list[tuple[int, int]] = []
    at = max(0, bisect_right(parts, (begin, begin, NONE)) - 1)
    while at < len(parts) and parts[at][0] < end:
        low, high, hole = parts[at]
        if high <= begin:
            at += 1
            continue
        new.append((max(low, begin), min(high, end)))
        fills.first_hole.setdefault(row, fills.holes[hole])
        del parts[at]
        missing[hole] -= 1
        for rest in ((low, begin), (end, high)):
            if rest[0] < rest[1]:
                insort(parts, (*rest, hole))
                missing[hole] += 1
        if not missing[hole]:
            fills.holes[hole].filled_row = row
            del missing[hole]
    return new


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out = [ranges[0]]
    for begin, end in ranges[1:]:
        if begin == out[-1][1]:
            out[-1] = (out[-1][0], end)
        else:
            out.append((begin, end))
    return out
