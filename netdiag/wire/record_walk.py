"""The records of one stream, one after the other: for few long streams, and where the capture has holes."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field
from typing import Self

import numpy as np

from netdiag.plain import plain
from netdiag.wire.octets import Octets
from netdiag.wire.pieces import Pieces
from netdiag.wire.record_header import HEADER, HEADER_BYTES, parse_header, valid_headers
from netdiag.wire.tables import Int64

_WINDOW = 1 << 15
"""Pieces of a stream that are turned into lists at a time, at most."""
_SMALL_WINDOW = 64
"""How many at first: often only a few records are asked for."""
_BLOCK = 1024
_PROOF = 3
"""Headers in a row that take a stream up again in the middle of a segment."""
_SEARCHED_BYTES = 1 << 20
"""How far after a hole a header is looked for inside segments (headers at the start of a segment: everywhere)."""


@plain(slots=True)
class Found:
    """Records: piece and key of the header, and its fields."""

    index: Int64
    position: Int64
    content_type: Int64
    version: Int64
    length: Int64

    @classmethod
    def none(cls) -> Self:
        """No records."""
        return cls(*(np.empty(0, np.int64) for _ in range(5)))

    @classmethod
    def concat(cls, parts: list[Found]) -> Self:
        """All records, in the order of their keys."""
        if not parts:
            return cls.none()
        columns = [np.concatenate(column) for column in zip(*(p.columns() for p in parts), strict=True)]
        order = np.argsort(columns[1], kind="stable")
        return cls(*(column[order] for column in columns))

    def columns(self) -> tuple[Int64, Int64, Int64, Int64, Int64]:
        """The arrays, in field order."""
        return self.index, self.position, self.content_type, self.version, self.length


@plain(slots=True)
class _Rows:
    index: list[int] = field(default_factory=list)
    position: list[int] = field(default_factory=list)
    content_type: list[int] = field(default_factory=list)
    version: list[int] = field(default_factory=list)
    length: list[int] = field(default_factory=list)

    def found(self) -> Found:
        columns = (self.index, self.position, self.content_type, self.version, self.length)
        return Found(*(np.array(c, np.int64) for c in columns))


class _Line:
    """A window on one stream's pieces as lists; positions only ever grow."""

    def __init__(self, pieces: Pieces, piece: int) -> None:
        self._pieces = pieces
        self._window = _SMALL_WINDOW
        self._end = int(np.searchsorted(pieces.stream, pieces.stream[piece], "right"))
        self.buffer = pieces.buffer
        self._load(piece)

    def _load(self, piece: int) -> None:
        stop = min(self._end, piece + self._window)
        self._window = min(4 * self._window, _WINDOW)
        self.base = piece
        self.key = self._pieces.key[piece:stop].tolist()
        self.captured_end = self._pieces.captured_end[piece:stop].tolist()
        self.offset = self._pieces.offset[piece:stop].tolist()

    def find(self, position: int, near: int) -> int | None:
        """Index (in the window) of the piece that has ``position`` in its captured octets; None when none has. May move the window."""
        while True:
            at = bisect_right(self.key, position, near) - 1
            if at >= 0 and position < self.captured_end[at]:
                return at
            if at == len(self.key) - 1 and self.base + len(self.key) < self._end:
                self._load(self.base + len(self.key))
                near = 0
                if position < self.key[0]:
                    return None
                continue
            return None

    def header(self, at: int, position: int) -> bytes:
        """Five octets from ``position`` in piece ``at``, fewer where the capture has no more in a row."""
        if position + HEADER_BYTES <= self.captured_end[at]:
            start = self.offset[at] + position - self.key[at]
            return bytes(self.buffer[start : start + HEADER_BYTES])
        return self._pieces.read(self.base + at, position, HEADER_BYTES)


def walk(pieces: Pieces, piece: int, position: int, *, limit: int | None = None) -> Found:
    """Records from ``position`` (in ``piece``) on until the octets end or are no record; not beyond ``limit`` records."""
    rows = _Rows()
    _walk(_Line(pieces, piece), position, rows, limit)
    return rows.found()


def walk_over_holes(pieces: Pieces, piece: int, position: int) -> Found:
    """As ``walk``, and on after octets that the capture lacks, wherever headers in a row prove the place."""
    line, rows = _Line(pieces, piece), _Rows()
    while True:
        stopped = _walk(line, position, rows, None)
        if stopped is None:
            return rows.found()
        version = rows.version[-1] if rows.version else None
        again = _take_up(pieces, piece, stopped, version)
        if again is None:
            return rows.found()
        piece, position = again
        line = _Line(pieces, piece)


def _walk(line: _Line, position: int, rows: _Rows, limit: int | None) -> int | None:
    """Where octets are missing (a position not captured), or None when the stream is over or is no TLS."""
    near = 0
    while limit is None or len(rows.index) < limit:
        at = line.find(position, near)
        if at is None:
            return position
        head = line.header(at, position)
        if len(head) < HEADER_BYTES:
            return position + len(head)
        fields = parse_header(head)
        if fields is None:
            return None
        rows.index.append(line.base + at)
        rows.position.append(position)
        rows.content_type.append(fields[0])
        rows.version.append(fields[1])
        rows.length.append(fields[2])
        position += HEADER_BYTES + fields[2]
        near = at
    return None


def take_up(pieces: Pieces, piece: int, position: int) -> Found:
    """Records of a stream that has none at ``position``: the capture began in the middle of one."""
    again = _take_up(pieces, piece, position, None)
    return walk_over_holes(pieces, *again) if again else Found.none()


def _take_up(pieces: Pieces, piece: int, position: int, version: int | None) -> tuple[int, int] | None:
    """The first place after ``position`` where records go on: at the start of a piece with one header that fits, inside with several."""
    octets = Octets(pieces.buffer)
    end = int(np.searchsorted(pieces.stream, pieces.stream[piece], "right"))
    begin = int(np.searchsorted(pieces.key[:end], position, "right"))
    budget = _SEARCHED_BYTES
    inside = begin - 1 if begin and pieces.stream[begin - 1] == pieces.stream[piece] else begin
    for block in range(begin, max(end, begin + 1), _BLOCK):
        stop = min(end, block + _BLOCK)
        heads = octets.rows(pieces.offset[block:stop], HEADER)
        starts = valid_headers(heads) & (pieces.captured_end[block:stop] - pieces.key[block:stop] >= HEADER_BYTES)
        if version is not None:
            starts &= heads["version"] == version
        candidates = np.flatnonzero(starts)
        first = block + int(candidates[0]) if candidates.size else stop
        for one in range(inside, first):
            if budget <= 0:
                break
            low, high = max(position, int(pieces.key[one])), int(pieces.captured_end[one])
            budget -= max(0, high - low)
            found = _search(pieces, one, low, high, version) if high > low else None
            if found is not None:
                return one, found
        inside = stop
        if first < stop:
            return first, int(pieces.key[first])
    return None


def _search(pieces: Pieces, piece: int, key: int, end: int, version: int | None) -> int | None:
    start = int(pieces.offset[piece]) + key - int(pieces.key[piece])
    octets = bytes(pieces.buffer[start : start + end - key])
    pattern = (version or 0x0303).to_bytes(2, "big")
    at = octets.find(pattern, 1)
    while at > 0:
        if _proved(pieces, piece, key + at - 1, version):
            return key + at - 1
        at = octets.find(pattern, at + 1)
    return None


def _proved(pieces: Pieces, piece: int, position: int, version: int | None) -> bool:
    """Whether several headers of one version follow each other from here."""
    found = walk(pieces, piece, position, limit=_PROOF)
    return len(found.index) >= _PROOF and bool((found.version == (version or found.version[0])).all())
