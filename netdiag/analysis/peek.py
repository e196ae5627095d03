"""Look at the first octets of a stream without taking them from its decoder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from netdiag.wire.chunk import Chunk

ENOUGH_BYTES = 64
"""What recognising a protocol takes: a request line's method, an HTTP/2 preface, a record header and a hello's type, a banner."""


class Peeked:
    """One direction whose beginning has been looked at; iterate it once, from its first chunk.

    ``gaps`` becomes True when octets were missing between two chunks (what is missing before the first is none: the capture began late).
    """

    def __init__(self, chunks: Iterable[Chunk], enough_bytes: int = ENOUGH_BYTES) -> None:
        self._rest = iter(chunks)
        self._begun: list[Chunk] = []
        self.gaps = False
        self.late = False
        """The capture lacks the beginning of this stream."""
        prefix = bytearray()
        for chunk in self._rest:
            self._begun.append(chunk)
            if len(self._begun) == 1:
                self.late = bool(chunk.missing_before)
            elif chunk.missing_before:
                break
            prefix += chunk.data
            if len(prefix) >= enough_bytes:
                break
        self.prefix = bytes(prefix[:enough_bytes])

    def __iter__(self) -> Iterator[Chunk]:
        first = True
        for chunk in chain(self._begun, self._rest):
            if chunk.missing_before and not first:
                self.gaps = True
            first = False
            yield chunk

    @property
    def first(self) -> Chunk | None:
        """The first chunk; None for a silent direction."""
        return self._begun[0] if self._begun else None
