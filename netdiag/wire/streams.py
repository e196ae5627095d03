"""Octets of one direction in stream order, for the protocol decoders."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from typing import overload

import numpy as np

from netdiag.wire.chunk import Chunk
from netdiag.wire.record_header import HEADER_BYTES, SSL2_HEADER_BYTES, SSL2_HELLO
from netdiag.wire.record_view import TlsRecordView
from netdiag.wire.tables import NONE, Buffer, Int64, Segments, TlsRecords
from netdiag.wire.tls_records import ChainedRecords

_BLOCK = 1024


def rows_of(table: Segments | TlsRecords, connection: int, direction: int) -> slice:
    """The rows of one direction of one connection."""
    wanted = np.array(
        (connection, connection + 1), table.connection.dtype
    )  # of another type, the whole column would be converted
    low, high = np.searchsorted(table.connection, wanted).tolist()
    cut = low + int(np.count_nonzero(table.direction[low:high] == 0))
    return slice(low, cut) if direction == 0 else slice(cut, high)


def chunks(buffer: Buffer, segments: Segments, rows: slice) -> Iterator[Chunk]:
    """The new octets of one direction, segment by segment in stream order.

    Octets that a perfect client never got (after a hole that was neither filled nor acknowledged) are left out. Octets that are missing
    from the capture but were acknowledged, or that the snap length cut, appear as ``missing_before`` of the next chunk; where it cut the last
    segment, that is a chunk without octets.
    """
    at, end, latest = 0, 0, NONE
    for offset, end, start, captured, seen_at, deliverable_at, packet in _pieces(segments, rows):
        if deliverable_at == NONE:
            return
        latest = max(latest, packet)
        length = min(end - offset, captured)
        if length <= 0:
            continue
        first, last = (None, None) if packet == NONE else (packet, latest)
        octets = bytes(buffer[start : start + length])
        yield Chunk(octets, offset, seen_at, seen_at, deliverable_at, first, last, offset - at)
        at = offset + length
    if at < end and at:
        yield Chunk(b"", end, seen_at, seen_at, deliverable_at, first, last, end - at)


_Piece = tuple[int, int, int, int, int, int, int]


def _pieces(segments: Segments, rows: slice) -> list[_Piece]:
    """(stream offset, end, buffer offset, captured octets, seen, deliverable, packet) of the new octets, in stream order."""
    begin, new = segments.stream_offset[rows], segments.new_offset[rows]
    end = begin + segments.length[rows]
    ahead = new - begin
    columns: list[Int64] = [
        new,
        end,
        segments.payload_offset[rows] + ahead,
        segments.captured_bytes[rows] - ahead,
        segments.seen_at[rows],
        segments.deliverable_at[rows],
        segments.packet[rows],
    ]
    fresh = (new < end) & (end > 0)
    if not fresh.all():
        columns = [column[fresh] for column in columns]
    found = list(zip(*(column.tolist() for column in columns), strict=True))
    found.sort()
    return found


def record_views(buffer: Buffer, segments: Segments, records: TlsRecords, rows: slice) -> RecordViews:
    """The TLS records in ``rows`` (of one direction), made one by one as they are asked for."""
    return RecordViews(buffer, segments, records, rows)


class RecordViews(Sequence[TlsRecordView]):
    """Rows become Python values a block at a time, so that a bulk stream's hundred thousand records need not all be there at once."""

    def __init__(self, buffer: Buffer, segments: Segments, records: TlsRecords, rows: slice) -> None:
        self._buffer = buffer
        self._segments = segments
        self._records = records
        self._rows = range(*rows.indices(len(records)))
        self._count = len(self._rows)
        self._block: list[tuple[int, ...]] = []
        self._block_at = -1
        self._pieces: list[_Piece] | None = None
        self._begins: list[int] = []

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> TlsRecordView: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[TlsRecordView]: ...

    def __getitem__(self, index: int | slice) -> TlsRecordView | Sequence[TlsRecordView]:
        if isinstance(index, slice):
            return [self._view(place) for place in range(*index.indices(self._count))]
        place = index if index >= 0 else self._count + index
        if not 0 <= place < self._count:
            raise IndexError(index)
        return self._view(place)

    def __iter__(self) -> Iterator[TlsRecordView]:
        return (self._view(place) for place in range(len(self._rows)))

    def rows(self, start: int) -> Iterator[tuple[int, ...]]:
        """As ``RecordRows``."""
        for at in range(start // _BLOCK, -(-len(self) // _BLOCK)):
            if at != self._block_at:
                self._load(at)
            yield from self._block[max(0, start - at * _BLOCK) :]

    def content(self, row: tuple[int, ...]) -> bytes:
        """As ``RecordRows``."""
        place, length = row[10], row[2]
        if place != NONE:
            return bytes(self._buffer[place : place + length])
        return self._content(row[0], row[3], length, place)

    def lacking(self, content_type: int) -> tuple[int, int]:
        """As ``RecordRows``."""
        rows = slice(self._rows.start, self._rows.stop)
        chosen = self._records.content_type[rows] == content_type
        return int(np.count_nonzero(chosen)), int(np.count_nonzero(chosen & (self._records.missing_bytes[rows] > 0)))

    def _view(self, place: int) -> TlsRecordView:
        at, inside = divmod(place, _BLOCK)
        if at != self._block_at:
            self._load(at)
        kind, version, length, offset, seen, last, ready, packet, last_packet, missing, content = self._block[inside]
        return TlsRecordView(
            content_type=kind,
            version=version,
            length=length,
            stream_offset=offset,
            first_seen_at=seen,
            last_seen_at=None if last == NONE else last,
            deliverable_at=None if ready == NONE else ready,
            first_packet=None if packet == NONE else packet,
            last_packet=None if last_packet == NONE else last_packet,
            missing_bytes=missing,
            read=partial(self._content, kind, offset, length, content),
        )

    def _load(self, at: int) -> None:
        rows = self._rows[at * _BLOCK : (at + 1) * _BLOCK]
        chosen = slice(rows.start, rows.stop, rows.step)
        one = self._records
        # In the order of ``RecordRow``.
        place = one.content_offset[chosen] if isinstance(one, ChainedRecords) else np.full(len(rows), NONE)
        columns = (
            one.content_type[chosen],
            one.version[chosen],
            one.length[chosen],
            one.stream_offset[chosen],
            one.first_seen_at[chosen],
            one.last_seen_at[chosen],
            one.deliverable_at[chosen],
            one.first_packet[chosen],
            one.last_packet[chosen],
            one.missing_bytes[chosen],
            place,
        )
        self._block = list(zip(*(column.tolist() for column in columns), strict=True))
        self._block_at = at

    def _content(self, kind: int, offset: int, length: int, content: int) -> bytes:
        if content != NONE:
            return bytes(self._buffer[content : content + length])
        header = SSL2_HEADER_BYTES if kind == SSL2_HELLO else HEADER_BYTES
        return self._gathered(offset + header, length)

    def _gathered(self, begin: int, length: int) -> bytes:
        """Octets from several segments, as far as they were captured; octets after a gap are left out."""
        if self._pieces is None:
            row = self._rows[0]
            connection, direction = int(self._records.connection[row]), int(self._records.direction[row])
            self._pieces = _pieces(self._segments, rows_of(self._segments, connection, direction))
            self._begins = [piece[0] for piece in self._pieces]
        at = bisect_right(self._begins, begin) - 1
        parts: list[bytes] = []
        while length > 0 and 0 <= at < len(self._pieces):
            offset, _, start, captured, *_ = self._pieces[at]
            skip = begin - offset
            if not 0 <= skip < captured:
                break
            part = self._buffer[start + skip : start + min(captured, skip + length)]
            parts.append(part)
            begin, length, at = begin + len(part), length - len(part), at + 1
        return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)
