"""The new octets of many directions as one ascending line of keys, so that one search finds a stream position in any of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from netdiag.plain import plain
from netdiag.wire.stream_order import in_stream_order, streams_of
from netdiag.wire.tables import Bool, Buffer, Int32, Int64, Segments


@plain(frozen=True, slots=True)
class Pieces:
    """New octets of segments in stream order. A key is ``stream × span + stream offset``; keys of a piece are ``key:end``."""

    span: int
    key: Int64
    end: Int64
    captured_end: Int64
    """End of the octets that are in the buffer."""
    offset: Int64
    """Of ``key`` in the buffer."""
    seen_at: Int64
    deliverable_at: Int64
    packet: Int64
    stream: Int64
    buffer: Buffer

    def __len__(self) -> int:
        return len(self.key)

    def at_or_before(self, keys: Int64) -> Int64:
        """Index of the last piece that begins at or before each key; −1 before the first."""
        return np.searchsorted(self.key, keys, "right") - 1

    def of(self, connections: Int64) -> Pieces:
        """Those of some connections (ids)."""
        rows = _of(self.stream >> 1, connections)
        if rows.all():
            return self
        columns = ("key", "end", "captured_end", "offset", "seen_at", "deliverable_at", "packet", "stream")
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})

    def read(self, piece: int, key: int, length: int) -> bytes:
        """Octets from ``key`` on (which lies in ``piece``), fewer where the capture has no more in a row."""
        parts: list[bytes] = []
        while length > 0 and piece < len(self.key) and self.key[piece] <= key < self.captured_end[piece]:
            start = int(self.offset[piece]) + key - int(self.key[piece])
            taken = min(length, int(self.captured_end[piece]) - key)
            parts.append(bytes(self.buffer[start : start + taken]))
            key, length, piece = key + taken, length - taken, piece + 1
        return b"".join(parts)


def pieces_of(buffer: Buffer, segments: Segments, chosen: Int64 | None = None) -> Pieces:
    """All new octets, or those of the ``chosen`` connections (ids)."""
    rows = in_stream_order(segments)
    if chosen is not None:
        rows = rows[_of(segments.connection, chosen)[rows]]
    begin = segments.new_offset[rows]
    ahead = begin - segments.stream_offset[rows]
    length = segments.length[rows] - ahead
    span = int((begin + length).max(initial=0)) + (1 << 20)  # no header or record reaches from one stream into the next
    stream = streams_of(segments)[rows]
    key = stream * span + begin
    return Pieces(
        span=span,
        key=key,
        end=key + length,
        captured_end=key + np.clip(segments.captured_bytes[rows] - ahead, 0, length),
        offset=segments.payload_offset[rows] + ahead,
        seen_at=segments.seen_at[rows],
        deliverable_at=segments.deliverable_at[rows],
        packet=segments.packet[rows],
        stream=stream,
        buffer=buffer,
    )


def advance(pieces: Pieces, index: Int64, position: Int64) -> Int64:
    """The last piece that begins at or before each position, given one that does: mostly the same or the next one."""
    if not len(index):
        return index
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


def _of(connection: Int64 | Int32, chosen: Int64) -> Bool:
    """Which rows are of the chosen connections."""
    wanted = np.zeros(max(int(connection.max(initial=0)), int(chosen.max(initial=0))) + 1, np.bool_)
    wanted[chosen] = True
    return wanted[connection]
