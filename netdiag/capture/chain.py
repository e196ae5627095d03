"""Where the records of a capture file begin.

A capture file is a linked list: each record's length leads to the next. Walking it one by one costs a cache miss each, so long stretches
are cut into lanes: plausible record heads are searched at about a thousand places, all lanes are walked in lockstep as one vector, and
then every lane must end exactly where the next one began. By induction from the first lane the result is exact; where a join fails (a
payload that looks like records), the walk goes on one by one until it meets a later lane. A wrong guess costs time, never correctness.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from netdiag.plain import plain
from netdiag.wire.octets import Octets
from netdiag.wire.tables import Int64

LANE_BYTES = 262144
"""About how much of the file one lane covers."""
MAX_LANES = 1024
MAX_SINGLY = 1 << 20
"""Records of one walk one by one; it stops as at a limit."""
GIVE_UP_LANES = 16
"""Searches in a row that found nothing: this is not what lanes are for."""
FEW_LANES = 6
"""Below this many lanes the one-by-one walk is faster than a step of the vector."""

Synchronise = Callable[[int, int], int | None]
"""(start, end) -> offset of the first plausible record head in that range, or None."""


class Stop(Enum):
    """Why a walk ended."""

    LIMIT = "the next record begins at or after the limit (or enough were found)"
    END = "not even a record header is left before the end of the file"
    CUT = "the record is longer than what is left of the file"
    DAMAGED = "the record's length is impossible"


@dataclass(frozen=True, slots=True)
class Layout:
    """How one record leads to the next: ``next = here + overhead + length``, rounded up to ``align``."""

    header_bytes: int
    """Octets that a record has at least."""
    length_at: int
    """Where in the header the 32-bit length is."""
    overhead: int
    """What the length does not count."""
    shortest: int
    longest: int
    """Lengths outside are damage."""
    order: str
    """``<`` or ``>``."""
    align: int = 1


@plain(frozen=True, slots=True)
class Walk:
    """Offsets of whole records in file order, and where and why the walk stopped."""

    offsets: Int64
    end: int
    stop: Stop


def walk(octets: Octets, layout: Layout, start: int, limit: int, synchronise: Synchronise | None = None) -> Walk:
    """Records that begin in ``[start, limit)``. Without ``synchronise`` one by one."""
    lanes = min(MAX_LANES, (limit - start) // LANE_BYTES)
    if synchronise is None or lanes < FEW_LANES:
        return _walk_singly(octets, layout, start, limit)
    starts = _lane_starts(start, limit, lanes, synchronise)
    return _stitch(octets, layout, starts, limit)


def _lane_starts(start: int, limit: int, lanes: int, synchronise: Synchronise) -> list[int]:
    starts, failures = [start], 0
    piece = (limit - start) // lanes
    for lane in range(1, lanes):
        place = start + lane * piece
        if place <= starts[-1]:
            continue
        head = synchronise(place, min(limit, place + piece))
        if head is not None and starts[-1] < head < limit:
            starts.append(head)
            failures = 0
        else:
            failures += 1
            if failures == GIVE_UP_LANES:
                break
    return starts


def _stitch(octets: Octets, layout: Layout, starts: list[int], limit: int) -> Walk:
    first = np.array(starts, np.int64)
    until = np.append(first[1:], limit)
    offsets, counts, ends = _walk_lanes(octets, layout, first, until)
    if (ends[:-1] == first[1:]).all():
        return _finish(octets, layout, offsets, int(ends[-1]), limit)
    bounds = np.concatenate(([0], np.cumsum(counts)))
    return _stitch_around_false_heads(octets, layout, offsets, bounds, first, ends, limit)


def _stitch_around_false_heads(
    octets: Octets, layout: Layout, offsets: Int64, bounds: Int64, first: Int64, ends: Int64, limit: int
) -> Walk:
    parts: list[Int64] = []
    lane, lanes = 0, len(first)
    while True:
        parts.append(offsets[bounds[lane] : bounds[lane + 1]])
        here = int(ends[lane])
        following = int(np.searchsorted(first, here))
        # A lane that could not take a single step ends where it began: it must not be taken for its own successor.
        if lane < following < lanes and first[following] == here:
            lane = following
            continue
        meets = set(first[max(following, lane + 1) :].tolist())
        single = _walk_singly(octets, layout, here, limit, meets)
        parts.append(single.offsets)
        if single.stop is not Stop.LIMIT or single.end not in meets:
            return Walk(np.concatenate(parts), single.end, single.stop)
        lane = int(np.searchsorted(first, single.end))


def _walk_lanes(octets: Octets, layout: Layout, first: Int64, until: Int64) -> tuple[Int64, Int64, Int64]:
    """All lanes in lockstep: offsets in lane order, records of each lane, and where each lane ended (its damaged record, if any)."""
    lengths = octets.view(np.dtype(layout.order + "u4"))
    stop_at = np.minimum(until, octets.size - layout.header_bytes + 1)
    lane = np.arange(len(first))
    here, ends = first.copy(), first.copy()
    steps: list[tuple[Int64, Int64]] = []
    while True:
        going = here < stop_at
        if not going.all():
            ends[lane[~going]] = here[~going]
            here, lane, stop_at = here[going], lane[going], stop_at[going]
        if lane.size < FEW_LANES:
            break
        length = lengths[here + layout.length_at].astype(np.int64)
        after = here + layout.overhead + _padded(length, layout.align)
        sane = (length >= layout.shortest) & (length <= layout.longest) & (after <= octets.size)
        if not sane.all():
            ends[lane[~sane]] = here[~sane]
            here, lane, stop_at, after = here[sane], lane[sane], stop_at[sane], after[sane]
        steps.append((here, lane))
        here = after
    rests = {}
    for number, place, limit in zip(lane.tolist(), here.tolist(), until[lane].tolist(), strict=True):
        rest = _walk_singly(octets, layout, place, limit)
        rests[number], ends[number] = rest.offsets, rest.end
    offsets, counts = _in_lane_order(steps, rests, len(first))
    return offsets, counts, ends


def _in_lane_order(steps: list[tuple[Int64, Int64]], rests: dict[int, Int64], lanes: int) -> tuple[Int64, Int64]:
    """Offsets lane by lane, from the (offsets, lanes) of each step and what was walked singly after them; and the number in each lane."""
    counts = np.zeros(lanes, np.int64)
    for _, lane in steps:
        counts[lane] += 1
    stepped = counts.copy()
    for number, rest in rests.items():
        counts[number] += len(rest)
    begins = np.cumsum(counts) - counts
    out = np.empty(int(counts.sum()), np.int64)
    for step, (here, lane) in enumerate(steps):
        out[begins[lane] + step] = here
    for number, rest in rests.items():
        begin = begins[number] + stepped[number]
        out[begin : begin + len(rest)] = rest
    return out, counts


def _padded(length: Int64, align: int) -> Int64:
    return length if align == 1 else (length + (align - 1)) & -align


def _finish(octets: Octets, layout: Layout, offsets: Int64, end: int, limit: int) -> Walk:
    """Say why the last lane ended where it did."""
    return Walk(
        offsets, end, _walk_singly(octets, layout, end, min(limit, end + 1)).stop if end < limit else Stop.LIMIT
    )


def _walk_singly(octets: Octets, layout: Layout, start: int, limit: int, meets: set[int] | None = None) -> Walk:
    """One by one, until the limit, the end, damage, or one of the offsets in ``meets``."""
    buffer, size = octets.buffer, octets.size
    length_of = struct.Struct(layout.order + "I").unpack_from
    last, align = size - layout.header_bytes, layout.align
    at, overhead, shortest, longest = layout.length_at, layout.overhead, layout.shortest, layout.longest
    offsets = array("q")
    here, stop = start, Stop.LIMIT
    while here < limit and len(offsets) < MAX_SINGLY and not (meets and here in meets):
        if here > last:
            stop = Stop.END
            break
        (length,) = length_of(buffer, here + at)
        if not shortest <= length <= longest:
            stop = Stop.DAMAGED
            break
        after = here + overhead + (-(-length // align) * align)
        if after > size:
            stop = Stop.CUT
            break
        offsets.append(here)
        here = after
    return Walk(np.array(offsets, np.int64), here, stop)
