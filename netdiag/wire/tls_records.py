"""TLS records (RFC 8446 section 5.1) found by following their length fields, in all streams at once.

Every stream advances by one record per step while many are left; the few long ones are walked one by one. After octets that the capture
lacks, a stream is taken up again only where record headers in a row prove it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from netdiag.wire.octets import Octets
from netdiag.wire.pieces import Pieces, pieces_of
from netdiag.wire.record_header import (
    HEADER,
    HEADER_BYTES,
    SSL2_HEADER_BYTES,
    SSL2_HELLO,
    parse_header,
    ssl2_hello,
    valid_headers,
)
from netdiag.wire.record_walk import Found, take_up, walk, walk_over_holes
from netdiag.wire.tables import NONE, Bool, Buffer, Int64, Segments, TlsRecords

_FEW = 128
"""Streams left over for the one-by-one walk."""
_MANY_STEPS = 24
_PROBED_SEGMENTS = 8
"""How many segments at the start of a direction may begin with a record header for a stream to be looked at as TLS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainedRecords(TlsRecords):
    """TLS records that remember where their content lies."""

    content_offset: Int64
    """In the buffer; NONE where the content is spread over segments or not all captured."""


def chain(
    buffer: Buffer,
    segments: Segments,
    connections: Int64 | None = None,
    *,
    first_offsets: Mapping[tuple[int, int], int] | None = None,
) -> ChainedRecords:
    """The TLS records of the given connections (ascending ids), or of all that look like TLS.

    ``first_offsets`` maps (connection, direction) to the stream offset where TLS begins, for STARTTLS and tunnels; 0 otherwise.
    """
    if connections is None:
        connections = np.flatnonzero(looks_like_tls(buffer, segments))
    pieces = pieces_of(buffer, segments, connections)
    if not len(pieces):
        return _table(pieces, Found.none())
    index, position = _starting_points(pieces, first_offsets or {})
    return _table(pieces, _records(pieces, index, position))


def looks_like_tls(buffer: Buffer, segments: Segments) -> Bool:
    """Of each connection id up to the largest: one of its directions begins with a TLS handshake record, or shows a chain of records
    (a capture may begin in the middle of a connection)."""
    pieces = pieces_of(buffer, segments)
    out = np.zeros(int(segments.connection.max(initial=-1)) + 1, np.bool_)
    if not len(pieces):
        return out
    first = np.flatnonzero(np.diff(pieces.stream, prepend=-1))
    heads = Octets(buffer).rows(pieces.offset[first], HEADER)
    whole = pieces.captured_end[first] - pieces.key[first] >= HEADER_BYTES
    hello = whole & valid_headers(heads) & (heads["type"] == 22)
    for place in np.flatnonzero(whole & ~hello & (heads["type"] >= 0x80)).tolist():
        hello[place] = (
            ssl2_hello(pieces.read(int(first[place]), int(pieces.key[first[place]]), HEADER_BYTES)) is not None
        )
    out[pieces.stream[first[hello]] >> 1] = True
    return _also_in_the_middle(pieces, first, out)


def _also_in_the_middle(pieces: Pieces, first: Int64, out: Bool) -> Bool:
    last = np.append(first[1:], len(pieces))
    octets = Octets(pieces.buffer)
    for step in range(_PROBED_SEGMENTS):
        index = first + step
        index = index[(index < last) & ~out[pieces.stream[first] >> 1]]
        if not index.size:
            break
        heads = octets.rows(pieces.offset[index], HEADER)
        likely = valid_headers(heads) & (pieces.captured_end[index] - pieces.key[index] >= HEADER_BYTES)
        for one in index[likely].tolist():
            if len(walk(pieces, one, int(pieces.key[one]), limit=3).index) >= 3:
                out[pieces.stream[one] >> 1] = True
    return out


def _starting_points(pieces: Pieces, first_offsets: Mapping[tuple[int, int], int]) -> tuple[Int64, Int64]:
    """Piece and key where each stream's first record is expected; streams whose beginning was not captured start at their first octet."""
    index = np.flatnonzero(np.diff(pieces.stream, prepend=-1))
    position = pieces.key[index].copy()
    streams = pieces.stream[index]
    for (connection, direction), offset in first_offsets.items():
        place = int(np.searchsorted(streams, 2 * connection + direction))
        if place < len(streams) and streams[place] == 2 * connection + direction:
            wanted = int(streams[place]) * pieces.span + offset
            found = int(pieces.at_or_before(np.array([wanted], np.int64))[0])
            inside = found >= index[place] and wanted < pieces.captured_end[found]
            index[place], position[place] = (found, wanted) if inside else (index[place], position[place])
    return index, position


def _records(pieces: Pieces, index: Int64, position: Int64) -> Found:
    parts: list[Found] = []
    index, position = _ssl2_hellos(pieces, index, position, parts)
    steps = 0
    while len(index) > _FEW or (len(index) and steps < _MANY_STEPS):
        step = _step(pieces, index, position)
        if step.found is not None:
            parts.append(step.found)
        for one, at in step.stopped:
            parts.append(walk_over_holes(pieces, one, at))
        if not steps:
            parts += [take_up(pieces, one, at) for one, at in step.invalid]
        index, position = step.index, step.position
        steps += 1
    parts += [walk_over_holes(pieces, one, at) for one, at in zip(index.tolist(), position.tolist(), strict=True)]
    return Found.concat(parts)


@dataclass(slots=True)
class _Step:
    """One record further in every stream."""

    found: Found | None
    index: Int64
    position: Int64
    """Where the streams that go on are now."""
    stopped: list[tuple[int, int]]
    """(piece, key) of streams whose next header is not captured, though later octets are."""
    invalid: list[tuple[int, int]]
    """(piece, key) of streams that have no record header here."""


def _step(pieces: Pieces, index: Int64, position: Int64) -> _Step:
    heads = Octets(pieces.buffer).rows(pieces.offset[index] + (position - pieces.key[index]), HEADER)
    good = valid_headers(heads)
    stopped: list[tuple[int, int]] = []
    spread = np.flatnonzero(position + HEADER_BYTES > pieces.captured_end[index])
    for place in spread.tolist():
        head = pieces.read(int(index[place]), int(position[place]), HEADER_BYTES)
        whole = len(head) == HEADER_BYTES
        heads[place] = np.frombuffer(head, HEADER)[0] if whole else 0
        good[place] = whole and parse_header(head) is not None
        if not whole:
            stopped.append((int(index[place]), int(position[place])))
    invalid: list[tuple[int, int]] = []
    if not good.all():
        bad = ~good
        bad[spread] &= heads["length"][spread] + heads["type"][spread] > 0
        invalid = list(zip(index[bad].tolist(), position[bad].tolist(), strict=True))
        index, position, heads = index[good], position[good], heads[good]
    if not len(index):
        return _Step(None, index, position, stopped, invalid)
    length = heads["length"].astype(np.int64)
    kind, version = heads["type"].astype(np.int64), heads["version"].astype(np.int64)
    found = Found(index, position, kind, version, length)
    position = position + HEADER_BYTES + length
    index = _advance(pieces, index, position)
    here = (position >= pieces.key[index]) & (position < pieces.captured_end[index])
    if not here.all():
        more = ~here & (np.append(pieces.stream, -1)[index + 1] == pieces.stream[index])
        stopped += zip(index[more].tolist(), position[more].tolist(), strict=True)
        index, position = index[here], position[here]
    return _Step(found, index, position, stopped, invalid)


def _advance(pieces: Pieces, index: Int64, position: Int64) -> Int64:
    """The last piece that begins at or before each position, given one that does: mostly the same or the next one."""
    beyond = np.flatnonzero(position >= pieces.end[index])
    if not beyond.size:
        return index
    out = index.copy()
    following = np.minimum(index[beyond] + 1, len(pieces) - 1)
    target = position[beyond]
    near = (pieces.key[following] <= target) & (target < pieces.end[following])
    out[beyond[near]] = following[near]
    far = beyond[~near]
    if far.size:
        out[far] = pieces.at_or_before(position[far])
    return out


def _ssl2_hellos(pieces: Pieces, index: Int64, position: Int64, parts: list[Found]) -> tuple[Int64, Int64]:
    """Step over SSL 2.0-compatible ClientHellos, which only a stream's beginning can hold."""
    first = Octets(pieces.buffer).rows(pieces.offset[index] + (position - pieces.key[index]), np.dtype("u1"))
    places = np.flatnonzero(first >= SSL2_HELLO)
    rows: list[tuple[int, int, int, int, int]] = []
    index, position = index.copy(), position.copy()
    for place in places.tolist():
        piece, key = int(index[place]), int(position[place])
        hello = ssl2_hello(pieces.read(piece, key, HEADER_BYTES))
        if hello is None:
            continue
        rows.append((piece, key, SSL2_HELLO, *hello))
        position[place] = key + SSL2_HEADER_BYTES + hello[1]
    if not rows:
        return index, position
    parts.append(Found(*(np.array(column, np.int64) for column in zip(*rows, strict=True))))
    index = _advance(pieces, index, position)
    here = (position >= pieces.key[index]) & (position < pieces.captured_end[index])
    return index[here], position[here]


def _table(pieces: Pieces, found: Found) -> ChainedRecords:
    header = np.where(found.content_type == SSL2_HELLO, SSL2_HEADER_BYTES, HEADER_BYTES)
    begin, end = found.position, found.position + header + found.length
    first = found.index
    last = _advance(pieces, first, end - 1) if len(first) else first
    seen = end <= pieces.end[last]
    present = _captured(pieces, first, last, begin, end)
    whole = (first == last) & (end <= pieces.captured_end[first])
    stream = pieces.stream[first]
    return ChainedRecords(
        connection=(stream >> 1).astype(np.int32),
        direction=(stream & 1).astype(np.uint8),
        stream_offset=begin - stream * pieces.span,
        content_type=found.content_type.astype(np.uint8),
        version=found.version.astype(np.uint16),
        length=found.length,
        first_packet=pieces.packet[first],
        last_packet=np.where(seen, _latest_packet(pieces, first, last), NONE),
        first_seen_at=pieces.seen_at[first],
        last_seen_at=np.where(seen, pieces.seen_at[last], NONE),
        deliverable_at=np.where(seen, pieces.deliverable_at[last], NONE),
        missing_bytes=end - begin - present,
        content_offset=np.where(whole, pieces.offset[first] + (begin - pieces.key[first]) + header, NONE),
    )


def _captured(pieces: Pieces, first: Int64, last: Int64, begin: Int64, end: Int64) -> Int64:
    """How many octets of ``begin:end`` are in the buffer."""
    before = np.concatenate(([0], np.cumsum(pieces.captured_end - pieces.key)))
    upto = before[last] + np.clip(np.minimum(end, pieces.captured_end[last]) - pieces.key[last], 0, None)
    return upto - (before[first] + np.minimum(begin, pieces.captured_end[first]) - pieces.key[first])


def _latest_packet(pieces: Pieces, first: Int64, last: Int64) -> Int64:
    """The packet whose capture made each record complete: the latest of those that hold its octets."""
    if not len(first) or not ((np.diff(pieces.packet) < 0) & (np.diff(pieces.stream) == 0)).any():
        return pieces.packet[last]
    bounds = np.stack((first, last + 1), axis=1).reshape(-1)
    return np.maximum.reduceat(np.append(pieces.packet, NONE), bounds)[::2]
