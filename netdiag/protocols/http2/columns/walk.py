"""Where the frames of one HTTP/2 direction begin, for a block of octets at once.

Frame lengths are a linked list. Senders mostly begin a TLS record or a segment with a frame, so the chunks of a block are entered as if each
did, and followed in lock step; a lane counts only where the frames before it end exactly at its beginning. Where they do not, frames are
followed one by one. A wrong guess costs time, never a frame.
"""

from __future__ import annotations

import numpy as np

from netdiag.wire.octets import BIG32
from netdiag.wire.tables import Int64

HEADER_BYTES = 9
_LEAST_LANES = 12
"""With fewer, one by one is faster."""


def frame_starts(data: bytes, position: int, entries: Int64) -> tuple[Int64, int]:
    """Offsets of all frame headers from ``position`` on that lie whole in ``data``, and where the next one begins.

    ``entries``: offsets behind ``position`` where a frame may begin, ascending.
    """
    if len(data) - position < HEADER_BYTES:
        return np.empty(0, np.int64), position
    starts = np.concatenate(([position], entries))
    ends = np.append(entries, len(data))
    if len(starts) < _LEAST_LANES:
        found: list[int] = []
        after = _follow(data, position, len(data), found)
        return np.array(found, np.int64), after
    steps, lanes, finals = _lock_step(data, starts, ends)
    if (finals[:-1] == starts[1:]).all() and finals[-1] > len(data) - HEADER_BYTES:
        return _lane_by_lane(steps, lanes, len(starts)), int(finals[-1])
    offsets, owners = np.concatenate(steps), np.concatenate(lanes)
    return _joined(data, starts.tolist(), ends.tolist(), finals.tolist(), offsets, owners)


def _follow(data: bytes, position: int, end: int, found: list[int]) -> int:
    """Add the headers that begin before ``end``; returns where the next one begins."""
    end = min(end, len(data) - HEADER_BYTES + 1)
    while position < end:
        found.append(position)
        position += HEADER_BYTES + (data[position] << 16 | data[position + 1] << 8 | data[position + 2])
    return position


def _lock_step(data: bytes, starts: Int64, ends: Int64) -> tuple[list[Int64], list[Int64], Int64]:
    """Of each step the offsets and the lane of each, and where each lane goes on (the next frame that begins behind its end, or that nobody
    followed)."""
    words = np.ndarray((len(data) - HEADER_BYTES + 1,), BIG32, data, 0, (1,))
    stops = np.minimum(ends, len(words))
    finals = starts.copy()
    lanes = np.flatnonzero(starts < stops)
    at, stop = starts[lanes], stops[lanes]
    offsets, owners = [at[:0]], [lanes[:0]]
    while lanes.size >= _LEAST_LANES:
        offsets.append(at)
        owners.append(lanes)
        at = at + (HEADER_BYTES + (words[at] >> 8).astype(np.int64))
        going = at < stop
        if not going.all():
            finals[lanes[~going]] = at[~going]
            lanes, at, stop = lanes[going], at[going], stop[going]
    finals[lanes] = at
    return offsets, owners, finals


def _lane_by_lane(steps: list[Int64], lanes: list[Int64], count: int) -> Int64:
    """All offsets in order."""
    owners = np.concatenate(lanes)
    sizes = np.bincount(owners, minlength=count)
    places = (np.cumsum(sizes) - sizes)[owners]
    places += np.repeat(np.arange(len(steps)) - 1, [len(step) for step in steps])  # the first step is empty
    found = np.empty(len(places), np.int64)
    found[places] = np.concatenate(steps)
    return found


def _joined(
    data: bytes, starts: list[int], ends: list[int], finals: list[int], offsets: Int64, lanes: Int64
) -> tuple[Int64, int]:
    """Lanes that begin where the frames before them end; the rest followed one by one."""
    good = np.zeros(len(starts), np.bool_)
    found: list[int] = []
    position = starts[0]
    for lane, (start, end, final) in enumerate(zip(starts, ends, finals, strict=True)):
        if position >= end:
            continue
        if position == start:
            good[lane] = True
            position = final
        if position < end:
            position = _follow(data, position, end, found)
    return np.sort(np.concatenate((offsets[good[lanes]], np.array(found, np.int64)))), position
