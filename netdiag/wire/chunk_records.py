"""TLS records of a stream that exists only as chunks: inside a tunnel, inside another TLS session, or after STARTTLS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from netdiag.wire.chunk import Chunk
from netdiag.wire.record_view import TlsRecordView

HEADER_BYTES = 5
_LEAST_TYPE, _MOST_TYPE = 20, 24
_MOST_BYTES = 16_384 + 2_048
"""RFC 5246 section 6.2.3: TLSCiphertext is at most 2^14 + 2048 octets."""


def is_header(octets: bytes | bytearray) -> bool:
    """Whether five octets can be a record's header."""
    kind, major, minor = octets[0], octets[1], octets[2]
    length = int.from_bytes(octets[3:5], "big")
    return _LEAST_TYPE <= kind <= _MOST_TYPE and major == 3 and minor <= 4 and length <= _MOST_BYTES


def record_views(chunks: Iterable[Chunk]) -> Iterator[TlsRecordView]:
    """Records in order, until the octets end, are missing, or are no record. A record cut by the end comes last, with missing octets."""
    held = _Held()
    for chunk in chunks:
        if chunk.missing_before and held.started:
            break
        held.add(chunk)
        yield from _whole(held)
        if held.lost:
            return
    rest = held.rest()
    if rest is not None:
        yield rest


def _whole(held: _Held) -> Iterator[TlsRecordView]:
    while (view := held.next()) is not None:
        yield view


class _Held:
    """Octets not yet given out, and which chunk each came from."""

    def __init__(self) -> None:
        self._octets = bytearray()
        self._chunks: list[Chunk] = []
        self._place = 0
        self.started = False
        self.lost = False

    def add(self, chunk: Chunk) -> None:
        if not self._octets:
            self._place = chunk.offset
            self._chunks.clear()
        self.started = True
        self._octets += chunk.data
        self._chunks.append(chunk)

    def next(self) -> TlsRecordView | None:
        if len(self._octets) < HEADER_BYTES:
            return None
        if not is_header(self._octets):
            self.lost = True
            return None
        end = HEADER_BYTES + int.from_bytes(self._octets[3:5], "big")
        return self._take(end) if len(self._octets) >= end else None

    def rest(self) -> TlsRecordView | None:
        if self.lost or len(self._octets) < HEADER_BYTES or not is_header(self._octets):
            return None
        return self._take(HEADER_BYTES + int.from_bytes(self._octets[3:5], "big"))

    def _take(self, end: int) -> TlsRecordView:
        kind, version, length = self._octets[0], int.from_bytes(self._octets[1:3], "big"), end - HEADER_BYTES
        fragment = bytes(self._octets[HEADER_BYTES:end])
        first, last = self._chunks[0], self._chunk_at(self._place + min(end, len(self._octets)) - 1)
        whole = len(self._octets) >= end
        view = TlsRecordView(
            content_type=kind,
            version=version,
            length=length,
            stream_offset=self._place,
            first_seen_at=first.first_seen_at,
            last_seen_at=last.last_seen_at if whole else None,
            deliverable_at=last.deliverable_at if whole else None,
            first_packet=first.first_packet,
            last_packet=last.last_packet,
            missing_bytes=length - len(fragment),
            read=lambda: fragment,
        )
        del self._octets[:end]
        self._place += end
        self._chunks = [c for c in self._chunks if c.offset + len(c.data) > self._place]
        return view

    def _chunk_at(self, offset: int) -> Chunk:
        return next((c for c in self._chunks if c.offset + len(c.data) > offset), self._chunks[-1])
