"""TLS records of many streams at once: every stream advances by one record per step while many are left; the few long ones, and those
that meet octets the capture lacks, are walked one by one."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netdiag.plain import plain
from netdiag.wire.octets import Octets
from netdiag.wire.pieces import Pieces, advance
from netdiag.wire.record_header import (
    HEADER,
    HEADER_BYTES,
    SSL2_HEADER_BYTES,
    SSL2_HELLO,
    parse_header,
    ssl2_hello,
    valid_headers,
)
from netdiag.wire.record_lanes import records_of_long_streams
from netdiag.wire.record_walk import Found, take_up, walk_over_holes
from netdiag.wire.tables import Bool, Int64

FEW = 128
"""Streams left over for the one-by-one walk."""
MANY_STEPS = 24
"""Steps for which even a few streams advance together."""

_Place = tuple[int, int]
"""(piece, key)."""


def records(pieces: Pieces, index: Int64, position: Int64) -> Found:
    """The records of the streams that begin at ``position`` in pieces ``index``."""
    parts: list[Found] = []
    index, position = _after_ssl2_hellos(pieces, index, position, parts)
    steps = 0
    while len(index) > FEW or (len(index) and steps < MANY_STEPS):
        step = _step(pieces, index, position)
        parts.append(step.found)
        parts += [walk_over_holes(pieces, *place) for place in step.stopped]
        if not steps:
            parts += [take_up(pieces, *place) for place in step.invalid]
        index, position = step.index, step.position
        steps += 1
    if steps:
        return Found.concat(parts + records_of_long_streams(pieces, index, position))
    for place in zip(index.tolist(), position.tolist(), strict=True):
        part = walk_over_holes(pieces, *place)
        parts.append(part if steps or len(part.index) else take_up(pieces, *place))
    return Found.concat(parts)


@plain(slots=True)
class _Step:
    """One record further in every stream."""

    found: Found
    index: Int64
    position: Int64
    """Where the streams that go on are now."""
    stopped: list[_Place] = field(default_factory=list)
    """Streams whose next header is not captured, though later octets may be."""
    invalid: list[_Place] = field(default_factory=list)
    """Streams that have no record header here."""


def _step(pieces: Pieces, index: Int64, position: Int64) -> _Step:
    heads = Octets(pieces.buffer).rows(pieces.offset[index] + (position - pieces.key[index]), HEADER)
    good = valid_headers(heads)
    whole = _gather_spread_headers(pieces, index, position, heads, good)
    stopped = _places(index, position, ~whole)
    invalid = _places(index, position, whole & ~good)
    if not good.all():
        index, position, heads = index[good], position[good], heads[good]
    length = heads["length"].astype(np.int64)
    found = Found(index, position, heads["type"].astype(np.int64), heads["version"].astype(np.int64), length)
    position = position + HEADER_BYTES + length
    index = advance(pieces, index, position)
    here = (position >= pieces.key[index]) & (position < pieces.captured_end[index])
    if not here.all():
        more = ~here & (np.append(pieces.stream, -1)[index + 1] == pieces.stream[index])
        stopped += _places(index, position, more)
        index, position = index[here], position[here]
    return _Step(found, index, position, stopped, invalid)


def _gather_spread_headers(pieces: Pieces, index: Int64, position: Int64, heads: NDArray[Any], good: Bool) -> Bool:
    """Read again the headers that do not lie in one piece; which of all headers were captured whole."""
    whole = position + HEADER_BYTES <= pieces.captured_end[index]
    for place in np.flatnonzero(~whole).tolist():
        head = pieces.read(int(index[place]), int(position[place]), HEADER_BYTES)
        good[place] = False
        if len(head) == HEADER_BYTES:
            heads[place] = np.frombuffer(head, HEADER)[0]
            whole[place], good[place] = True, parse_header(head) is not None
    return np.asarray(whole)


def _places(index: Int64, position: Int64, chosen: Bool) -> list[_Place]:
    if not chosen.any():
        return []
    return list(zip(index[chosen].tolist(), position[chosen].tolist(), strict=True))


def _after_ssl2_hellos(pieces: Pieces, index: Int64, position: Int64, parts: list[Found]) -> tuple[Int64, Int64]:
    """Step over SSL 2.0-compatible ClientHellos, which only a stream's beginning can hold."""
    first = Octets(pieces.buffer).rows(pieces.offset[index] + (position - pieces.key[index]), np.dtype("u1"))
    rows: list[tuple[int, int, int, int, int]] = []
    index, position = index.copy(), position.copy()
    for place in np.flatnonzero(first >= SSL2_HELLO).tolist():
        piece, key = int(index[place]), int(position[place])
        hello = ssl2_hello(pieces.read(piece, key, HEADER_BYTES))
        if hello is None:
            continue
        rows.append((piece, key, SSL2_HELLO, *hello))
        position[place] = key + SSL2_HEADER_BYTES + hello[1]
    if not rows:
        return index, position
    parts.append(Found(*(np.array(column, np.int64) for column in zip(*rows, strict=True))))
    index = advance(pieces, index, position)
    here = (position >= pieces.key[index]) & (position < pieces.captured_end[index])
    return index[here], position[here]
