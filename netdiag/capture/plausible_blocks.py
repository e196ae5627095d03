"""What a pcapng block looks like: its two lengths agree. To find one in the middle of a file, for lanes and after damage."""

from __future__ import annotations

import struct

import numpy as np

from netdiag.capture.pcapng_blocks import BlockType
from netdiag.capture.plausible import MAX_TRIES, SEARCH_BYTES, stretches
from netdiag.wire.octets import Octets

SECTION_TYPE = b"\x0a\x0d\x0d\x0a"
SECTION_MAGIC = 0x1A2B3C4D
CHAIN = 3
"""Blocks that must follow each other before a place is believed in for a lane."""
KNOWN_TYPES = frozenset(int(t) for t in BlockType)


class BlockHeads:
    """Heads of pcapng blocks of one byte order."""

    def __init__(self, octets: Octets, order: str, longest: int) -> None:
        self._octets = octets
        self._order = order
        self._u4 = np.dtype(order + "u4")
        self._head = struct.Struct(order + "II")
        self._length = struct.Struct(order + "I")
        self._longest = longest
        self._other_magic = struct.pack(">I" if order == "<" else "<I", SECTION_MAGIC)
        self._enhanced = struct.pack(order + "I", BlockType.ENHANCED_PACKET)

    def synchronise(self, start: int, end: int) -> int | None:
        """The first enhanced packet block in the range, quickly."""
        width, here = 4096, start
        while here < end:
            text = self._octets.text(here, min(end, here + width))
            at, tries = text.find(self._enhanced), 0
            while at >= 0 and tries < MAX_TRIES:
                tries += 1
                if self._is_chain(here + at):
                    return here + at
                at = text.find(self._enhanced, at + 1)
            here, width = here + max(1, len(text) - 3), width * 4
            if len(text) < 4:
                return None
        return None

    def is_cut(self, offset: int) -> bool:
        """Whether a good block begins there that just reaches beyond the end of the file."""
        if offset + 12 > self._octets.size:
            return True
        kind, length = self._head.unpack_from(self._octets.buffer, offset)
        return kind in KNOWN_TYPES and length % 4 == 0 and self._inner_lengths_fit(offset, kind, length)

    def resynchronise(self, start: int) -> int | None:
        """The first place where a block begins that is followed by another one, by the end of the file, or by a cut one; or a section of
        the other byte order."""
        for here, until in stretches(start, self._octets.size - 11):
            found = [
                place
                for place in (self._first_block(here, until), self._other_section(here, until))
                if place is not None
            ]
            if found:
                return min(found)
            if until - here == SEARCH_BYTES:
                self._octets.release(here, until)
        return None

    def _first_block(self, start: int, end: int) -> int | None:
        size = self._octets.size
        length = self._octets.run(start + 4, end + 4, self._u4)
        good = (length >= 12) & (length <= self._longest) & (length & 3 == 0)
        places = start + np.flatnonzero(good)
        length = length[good].astype(np.int64)
        inside = places + length <= size
        places, length = places[inside], length[inside]
        good = self._octets.column(places + length - 4, self._u4) == length
        good &= np.isin(self._octets.column(places, self._u4), list(KNOWN_TYPES))
        for place, size_of in zip(places[good].tolist(), length[good].tolist(), strict=True):
            if place + size_of == size or self._is_block(place + size_of) or self.is_cut(place + size_of):
                return int(place)
        return None

    def _other_section(self, start: int, end: int) -> int | None:
        text = self._octets.text(start, end + 11)
        at = text.find(SECTION_TYPE)
        while at >= 0:
            if text[at + 8 : at + 12] == self._other_magic:
                return start + at
            at = text.find(SECTION_TYPE, at + 1)
        return None

    def _is_block(self, offset: int) -> bool:
        """Known type and equal lengths."""
        if offset + 12 > self._octets.size:
            return False
        kind, length = self._head.unpack_from(self._octets.buffer, offset)
        if length % 4 or not 12 <= length <= self._longest or offset + length > self._octets.size:
            return False
        return self._length.unpack_from(self._octets.buffer, offset + length - 4)[0] == length and kind in KNOWN_TYPES

    def _is_chain(self, offset: int) -> bool:
        here = offset
        for count in range(CHAIN):
            if here == self._octets.size:
                return count > 0
            if not self._is_block(here):
                return False
            here += self._head.unpack_from(self._octets.buffer, here)[1]
        return True

    def _inner_lengths_fit(self, offset: int, kind: int, length: int) -> bool:
        """A packet block says twice how long it is; a cut one must agree with itself as far as it is there."""
        if kind != BlockType.ENHANCED_PACKET or offset + 28 > self._octets.size:
            return True
        captured = self._length.unpack_from(self._octets.buffer, offset + 20)[0]
        return bool(captured + 32 <= length <= captured + 32 + 65536 * 4)
