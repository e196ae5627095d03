"""TLS records (RFC 8446 section 5.1) of all connections, found by following their length fields."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from netdiag.plain import plain
from netdiag.wire.octets import Octets
from netdiag.wire.pieces import Pieces, advance, pieces_of
from netdiag.wire.record_header import (
    HANDSHAKE,
    HEADER,
    HEADER_BYTES,
    SSL2_HEADER_BYTES,
    SSL2_HELLO,
    parse_header,
    ssl2_hello,
    valid_headers,
)
from netdiag.wire.record_steps import records
from netdiag.wire.record_walk import Found, walk
from netdiag.wire.tables import NONE, Bool, Buffer, Int64, Segments, TlsRecords

_PROBED_SEGMENTS = 8
"""How many segments at the start of a direction may begin with a record header for a stream to be looked at as TLS."""
_PROOF = 3
"""Headers in a row that make a stream TLS whose handshake was not captured."""


@plain(frozen=True, kw_only=True)
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
    pieces = pieces_of(buffer, segments)
    if connections is None:
        connections = np.flatnonzero(_like_tls(pieces, segments))
    pieces = pieces.of(connections)
    if not len(pieces):
        return _table(pieces, Found.none())
    index, position = _starting_points(pieces, first_offsets or {})
    return _table(pieces, records(pieces, index, position))


def _like_tls(pieces: Pieces, segments: Segments) -> Bool:
    out = np.zeros(int(segments.connection.max(initial=-1)) + 1, np.bool_)
    if not len(pieces):
        return out
    first = np.flatnonzero(np.diff(pieces.stream, prepend=-1))
    heads = Octets(pieces.buffer).rows(pieces.offset[first], HEADER)
    captured = pieces.captured_end[first] - pieces.key[first]
    hello = (captured >= HEADER_BYTES) & valid_headers(heads) & (heads["type"] == HANDSHAKE)
    spread = (captured < HEADER_BYTES) & (captured > 0) & (heads["type"] == HANDSHAKE)
    for place in np.flatnonzero(spread | (heads["type"] >= SSL2_HELLO)).tolist():
        head = pieces.read(int(first[place]), int(pieces.key[first[place]]), HEADER_BYTES)
        hello[place] = len(head) == HEADER_BYTES and (ssl2_hello(head) or parse_header(head)) is not None
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
            if len(walk(pieces, one, int(pieces.key[one]), limit=_PROOF).index) >= _PROOF:
                out[pieces.stream[one] >> 1] = True
    return out


def _starting_points(pieces: Pieces, first_offsets: Mapping[tuple[int, int], int]) -> tuple[Int64, Int64]:
    """Piece and key where each stream's first record is expected; streams whose beginning was not captured start at their first octet."""
    index = np.flatnonzero(np.diff(pieces.stream, prepend=-1))
    position = pieces.key[index]
    streams = pieces.stream[index]
    for (connection, direction), offset in first_offsets.items():
        stream = 2 * connection + direction
        place = int(np.searchsorted(streams, stream))
        if place == len(streams) or streams[place] != stream:
            continue
        wanted = stream * pieces.span + offset
        found = int(pieces.at_or_before(np.array([wanted], np.int64))[0])
        if found >= index[place]:
            index[place], position[place] = found, wanted
    return index, position


def _table(pieces: Pieces, found: Found) -> ChainedRecords:
    header = np.where(found.content_type == SSL2_HELLO, SSL2_HEADER_BYTES, HEADER_BYTES)
    begin, end = found.position, found.position + header + found.length
    first = found.index
    last = advance(pieces, first, end - 1)
    seen = end <= pieces.end[last]
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
        last_packet=np.where(seen, _latest_packet(pieces, last), NONE),
        first_seen_at=pieces.seen_at[first],
        last_seen_at=np.where(seen, pieces.seen_at[last], NONE),
        deliverable_at=np.where(seen, pieces.deliverable_at[last], NONE),
        missing_bytes=end - begin - _captured(pieces, first, last, begin, end),
        content_offset=np.where(whole, pieces.offset[first] + (begin - pieces.key[first]) + header, NONE),
    )


def _captured(pieces: Pieces, first: Int64, last: Int64, begin: Int64, end: Int64) -> Int64:
    """How many octets of ``begin:end`` are in the buffer."""
    captured = np.minimum(end, pieces.captured_end[first]) - begin  # a header is always there
    spread = np.flatnonzero(first != last)
    if spread.size:
        first, last, begin, end = first[spread], last[spread], begin[spread], end[spread]
        before = np.concatenate(([0], np.cumsum(pieces.captured_end - pieces.key)))
        upto = before[last] + np.clip(np.minimum(end, pieces.captured_end[last]) - pieces.key[last], 0, None)
        begun = before[first] + np.minimum(begin, pieces.captured_end[first]) - pieces.key[first]
        captured[spread] = upto - begun
    return captured


def _latest_packet(pieces: Pieces, last: Int64) -> Int64:
    """The packet whose capture made each record deliverable: the latest of those that hold its octets and all before them."""
    if not len(last) or not ((np.diff(pieces.packet) < 0) & (np.diff(pieces.stream) == 0)).any():
        return pieces.packet[last]
    base = pieces.stream * (int(pieces.packet.max()) + 2)  # each stream starts above everything in those before it
    return np.asarray((np.maximum.accumulate(pieces.packet + base) - base)[last])
