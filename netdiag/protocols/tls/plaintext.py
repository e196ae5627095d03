"""Decrypted application data of one direction as chunks of a stream, with its holes."""

from __future__ import annotations

from collections import deque

from netdiag.wire.chunk import Chunk
from netdiag.wire.record_view import TlsRecordView


class Plaintext:
    """Chunks that are ready to be taken, and how much is missing before the next one."""

    __slots__ = ("_missing", "_offset", "_unknown", "ready")

    def __init__(self) -> None:
        self.ready: deque[Chunk] = deque()
        self._offset = 0
        self._missing = 0
        self._unknown = False

    def add(self, record: TlsRecordView, content: bytes) -> None:
        """The content of one record; its times are the record's."""
        if not content:
            return
        seen_at = record.first_seen_at
        last_seen_at = record.last_seen_at if record.last_seen_at is not None else seen_at
        deliverable_at = record.deliverable_at if record.deliverable_at is not None else last_seen_at
        missing = -1 if self._unknown else self._missing
        begin = self.passed(self._missing + len(content)) + self._missing
        self._missing, self._unknown = 0, False
        self.ready.append(
            Chunk(
                content, begin, seen_at, last_seen_at, deliverable_at, record.first_packet, record.last_packet, missing
            )
        )

    @property
    def whole(self) -> bool:
        """Nothing is waiting, and nothing is missing before what comes next."""
        return not (self.ready or self._missing or self._unknown)

    def passed(self, size: int) -> int:
        """So many octets more; returns where they begin."""
        begin = self._offset
        self._offset += size
        return begin

    def lose(self, size: int | None) -> None:
        """Octets that could not be read; None (or a negative number, where the arithmetic does not come out) when nobody knows how many."""
        if size is None or size < 0:
            self._unknown = True
        else:
            self._missing += size
