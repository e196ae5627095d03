"""TLS records of long streams, many at a time: each stream is entered at places some distance apart, and the records from all of them are
followed in lock step.

A place to enter is guessed (headers in a row); each lane must end exactly where the next begins. The first begins where a record is known
to begin, so by induction the result is what a walk from there finds; where a guess was wrong, that walk is made instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netdiag.plain import plain
from netdiag.wire.octets import Octets
from netdiag.wire.pieces import Pieces, advance
from netdiag.wire.record_header import HEADER, HEADER_BYTES, MAX_RECORD_BYTES, valid_headers
from netdiag.wire.record_walk import Found, walk, walk_over_holes
from netdiag.wire.tables import Bool, Int64

LANE_BYTES = 1 << 21
"""Entering a stream costs as much as walking about thirty records; a lane of full records has 128."""
LEAST_LANES = 3
_PROOF = 3
_DATA = b"\x17\x03\x03"
"""What a long stream's records begin with: application_data, the version of TLS 1.2 and 1.3."""


@plain(slots=True)
class _Lanes:
    """Where each lane is (piece, key), where the next one of its stream begins, and which stream that is."""

    index: Int64
    position: Int64
    limit: Int64
    stream: Int64

    def where(self, chosen: Bool) -> _Lanes:
        return _Lanes(self.index[chosen], self.position[chosen], self.limit[chosen], self.stream[chosen])


def records_of_long_streams(pieces: Pieces, index: Int64, position: Int64) -> list[Found]:
    """The records of streams that are at ``position`` in pieces ``index``, to their ends."""
    parts: list[_Lanes] = []
    one_by_one: list[tuple[int, int]] = []
    for place in zip(index.tolist(), position.tolist(), strict=True):
        lanes = _divided(pieces, *place)
        if lanes is None:
            one_by_one.append(place)
        else:
            parts.append(lanes)
    found: list[Found] = []
    if parts:
        together = _Lanes(
            *(np.concatenate(c) for c in zip(*((p.index, p.position, p.limit, p.stream) for p in parts), strict=True))
        )
        records, failed = _follow(pieces, together)
        found.append(records)
        again = [part for part in parts if int(part.stream[0]) in failed]
        one_by_one += [(int(part.index[0]), int(part.position[0])) for part in again]
    return found + [walk_over_holes(pieces, *place) for place in one_by_one]


def _divided(pieces: Pieces, piece: int, position: int) -> _Lanes | None:
    """The lanes of one stream; None when it is short or has gaps."""
    end = int(np.searchsorted(pieces.stream, pieces.stream[piece], "right"))
    last = int(pieces.captured_end[end - 1])
    if last - position < LEAST_LANES * LANE_BYTES:
        return None
    if (pieces.captured_end[piece : end - 1] != pieces.key[piece + 1 : end]).any():
        return None
    starts = {position: piece}
    for target in range(position + LANE_BYTES, last - LANE_BYTES // 2, LANE_BYTES):
        entered = _enter(pieces, target)
        if entered is not None:
            starts[entered[1]] = entered[0]
    begin = np.array(sorted(starts), np.int64)
    index = np.array([starts[place] for place in begin.tolist()], np.int64)
    return _Lanes(index, begin, np.append(begin[1:], last), np.full(len(begin), pieces.stream[piece]))


def _enter(pieces: Pieces, target: int) -> tuple[int, int] | None:
    """The first place (piece, key) from ``target`` on where several headers follow each other."""
    piece = int(np.searchsorted(pieces.key, target, "right")) - 1
    octets = pieces.read(piece, target, MAX_RECORD_BYTES + HEADER_BYTES)
    at = octets.find(_DATA)
    while at >= 0:
        key = target + at
        inside = piece + int(np.searchsorted(pieces.key[piece : piece + len(octets)], key, "right")) - 1
        if len(walk(pieces, inside, key, limit=_PROOF).index) == _PROOF:
            return inside, key
        at = octets.find(_DATA, at + 1)
    return None


def _follow(pieces: Pieces, lanes: _Lanes) -> tuple[Found, set[int]]:
    """All lanes to their limits (the stream's end for its last one), and the streams in which a lane did not end where the next began."""
    parts: list[Found] = []
    failed: set[int] = set()
    streams, last = np.unique(lanes.stream[::-1], return_index=True)
    ends = lanes.limit[::-1][last]
    octets = Octets(pieces.buffer)
    while len(lanes.index):
        heads, whole = _headers(pieces, octets, lanes)
        good = whole & valid_headers(heads)
        if not good.all():
            failed |= set(lanes.stream[~good & (whole | ~_final(lanes, streams, ends))].tolist())
            lanes, heads = lanes.where(good), heads[good]
        length = heads["length"].astype(np.int64)
        kind, version = heads["type"].astype(np.int64), heads["version"].astype(np.int64)
        parts.append(Found(lanes.index, lanes.position, kind, version, length))
        position = lanes.position + HEADER_BYTES + length
        beyond = position > lanes.limit
        if beyond.any():
            failed |= set(lanes.stream[beyond & ~_final(lanes, streams, ends)].tolist())
        lanes.position = position
        lanes = lanes.where(position < lanes.limit)
        lanes.index = advance(pieces, lanes.index, lanes.position)
    found = Found.concat(parts)
    if failed:
        kept = ~np.isin(pieces.stream[found.index], list(failed))
        found = Found(*(column[kept] for column in found.columns()))
    return found, failed


def _final(lanes: _Lanes, streams: Int64, ends: Int64) -> Bool:
    """Which lanes are the last of their stream: a record may cross its end, and the capture may end inside a header."""
    return np.asarray(lanes.limit == ends[np.searchsorted(streams, lanes.stream)])


def _headers(pieces: Pieces, octets: Octets, lanes: _Lanes) -> tuple[NDArray[Any], Bool]:
    """The header at each lane, and whether it was captured whole."""
    heads = octets.rows(pieces.offset[lanes.index] + (lanes.position - pieces.key[lanes.index]), HEADER)
    whole = lanes.position + HEADER_BYTES <= pieces.captured_end[lanes.index]
    for place in np.flatnonzero(~whole).tolist():
        head = pieces.read(int(lanes.index[place]), int(lanes.position[place]), HEADER_BYTES)
        if len(head) == HEADER_BYTES:
            heads[place] = np.frombuffer(head, HEADER)[0]
            whole[place] = True
    return heads, whole
