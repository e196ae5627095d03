"""Octets of one direction in stream order, for the protocol decoders."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

from netdiag.wire.chunk import Chunk
from netdiag.wire.record_header import HEADER_BYTES, SSL2_HEADER_BYTES, SSL2_HELLO
from netdiag.wire.record_view import TlsRecordView
from netdiag.wire.tables import NONE, Buffer, Segments, TlsRecords


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
    from the capture but were acknowledged, or that the snap length cut, appear as ``missing_before`` of the next chunk.
    """
    at = 0
    for offset, end, start, captured, seen_at, deliverable_at, packet in _pieces(segments, rows):
        if deliverable_at == NONE:
            return
        length = min(end - offset, captured)
        if length <= 0:
            continue
        frame = None if packet == NONE else packet
        yield Chunk(
            data=bytes(buffer[start : start + length]),
            offset=offset,
            first_seen_at=seen_at,
            last_seen_at=seen_at,
            deliverable_at=deliverable_at,
            first_packet=frame,
            last_packet=frame,
            missing_before=offset - at,
        )
        at = offset + length


_Piece = tuple[int, int, int, int, int, int, int]


def _pieces(segments: Segments, rows: slice) -> list[_Piece]:
    """(stream offset, end, buffer offset, captured octets, seen, deliverable, packet) of the new octets, in stream order."""
    one = segments.take(rows)
    ahead = one.new_offset - one.stream_offset
    end = one.stream_offset + one.length
    columns = (
        one.new_offset,
        end,
        one.payload_offset + ahead,
        one.captured_bytes - ahead,
        one.seen_at,
        one.deliverable_at,
        one.packet,
    )
    new = (one.new_offset < end) & (end > 0)
    if new.all():
        found = list(zip(*(column.tolist() for column in columns), strict=True))
    else:
        found = list(zip(*(column[new].tolist() for column in columns), strict=True))
    found.sort()
    return found


def record_views(buffer: Buffer, segments: Segments, records: TlsRecords, rows: slice) -> Sequence[TlsRecordView]:
    """The TLS records in ``rows`` (of one direction), made one by one as they are asked for."""
    return _RecordViews(buffer, segments, records, rows)


class _RecordViews(Sequence[TlsRecordView]):
    def __init__(self, buffer: Buffer, segments: Segments, records: TlsRecords, rows: slice) -> None:
        self._buffer = buffer
        self._segments = segments
        self._records = records
        self._rows = range(*rows.indices(len(records)))
        self._pieces: list[_Piece] | None = None
        self._begins: list[int] = []

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> TlsRecordView: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[TlsRecordView]: ...

    def __getitem__(self, index: int | slice) -> TlsRecordView | Sequence[TlsRecordView]:
        if isinstance(index, slice):
            return [self._view(row) for row in self._rows[index]]
        return self._view(self._rows[index])

    def _view(self, row: int) -> TlsRecordView:
        one = self._records
        return TlsRecordView(
            content_type=int(one.content_type[row]),
            version=int(one.version[row]),
            length=int(one.length[row]),
            stream_offset=int(one.stream_offset[row]),
            first_seen_at=int(one.first_seen_at[row]),
            last_seen_at=_or_none(one.last_seen_at[row]),
            deliverable_at=_or_none(one.deliverable_at[row]),
            first_packet=_or_none(one.first_packet[row]),
            last_packet=_or_none(one.last_packet[row]),
            missing_bytes=int(one.missing_bytes[row]),
            read=lambda: self._content(row),
        )

    def _content(self, row: int) -> bytes:
        """The record's content as far as it was captured; octets after a gap within it are left out."""
        one = self._records
        header = SSL2_HEADER_BYTES if one.content_type[row] == SSL2_HELLO else HEADER_BYTES
        begin, length = int(one.stream_offset[row]) + header, int(one.length[row])
        if self._pieces is None:
            connection, direction = int(one.connection[row]), int(one.direction[row])
            self._pieces = _pieces(self._segments, rows_of(self._segments, connection, direction))
            self._begins = [piece[0] for piece in self._pieces]
        at = bisect_right(self._begins, begin) - 1
        parts: list[bytes] = []
        while length > 0 and 0 <= at < len(self._pieces):
            offset, _, start, captured, *_ = self._pieces[at]
            skip = begin - offset
            if not 0 <= skip < captured:
                break
            part = bytes(self._buffer[start + skip : start + min(captured, skip + length)])
            parts.append(part)
            begin, length, at = begin + len(part), length - len(part), at + 1
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _or_none(value: np.integer[Any]) -> int | None:
    return None if value == NONE else int(value)
