"""What a record head looks like: to find one in the middle of a file, for lanes and after damage."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from netdiag.capture.chain import Layout
from netdiag.capture.facts import MAX_PACKET_BYTES
from netdiag.wire.octets import Octets
from netdiag.wire.tables import Bool, Int64

CHAIN = 4
"""Heads that must agree before a place is believed to be one."""
NEAR_SECONDS = 7 * 86400
"""How far the time of a record found by search may be from the last one's."""
MAX_TRIES = 100
"""Candidates for a lane's beginning that are looked at in one stretch; octets that are alike everywhere would take for ever."""
FIRST_SEARCH_BYTES, SEARCH_BYTES = 1 << 10, 1 << 18
"""How much is searched at once: little at first, since most damage is short, and there may be much of it."""


def stretches(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Consecutive ranges from ``start`` to ``end``, each twice as long as the one before."""
    here, length = start, FIRST_SEARCH_BYTES
    while here < end:
        yield here, min(end, here + length)
        here, length = here + length, min(2 * length, SEARCH_BYTES)


class PcapHeads:
    """Heads of pcap records."""

    def __init__(self, octets: Octets, layout: Layout, ticks_per_second: int, *, swapped: bool) -> None:
        self._octets = octets
        self._layout = layout
        self._ticks = ticks_per_second
        self._captured_at, self._original_at = (12, 8) if swapped else (8, 12)
        self._head = struct.Struct(layout.order + "IIII")
        self._u4 = np.dtype(layout.order + "u4")
        self._near: int | None = None
        self._packed: dict[tuple[int, bool], list[bytes]] = {}

    @staticmethod
    def count(octets: Octets, start: int, order: str, header_bytes: int, swapped: bool, *, most: int = 8) -> int:
        """How many plausible records follow each other from ``start`` if their headers are so long; ``most`` when two or more end exactly with
        the file. That it ends inside one is no proof of it: octets that are no head often claim such a length."""
        head = struct.Struct(order + "IIII")
        here, first_seconds = start, None
        for count in range(most):
            if here + header_bytes > octets.size:
                return most if count > 1 and here == octets.size else count
            seconds, _, captured, original = head.unpack(octets.text(here, here + 16))
            if swapped:
                captured, original = original, captured
            first_seconds = seconds if first_seconds is None else first_seconds
            if captured > MAX_PACKET_BYTES or captured > original or abs(seconds - first_seconds) > NEAR_SECONDS:
                return count
            here += header_bytes + captured
        return most

    def synchronise(self, start: int, end: int) -> int | None:
        """The first plausible head in the range, quickly: the two high octets of the seconds hold for 18 hours, so search for them."""
        if self._near is None:
            self._near = self._seconds_at(24)
        width, here = 4096, start
        while here < end:
            until = min(end, here + width)
            found = self._find(here, until)
            if found is not None:
                self._near = self._seconds_at(found)
                return found
            here, width = until, width * 4
        return None

    def is_cut(self, offset: int, last_seconds: int | None) -> bool:
        """Whether what is at ``offset`` is a good head whose packet (or itself) just reaches beyond the end of the file."""
        if offset + 16 > self._octets.size:
            return True
        seconds, fraction, captured, original = self._fields(offset)
        near = last_seconds is None or abs(seconds - last_seconds) <= NEAR_SECONDS
        return near and fraction < self._ticks and 0 < captured <= original <= 2 * MAX_PACKET_BYTES

    def resynchronise(self, start: int, last_seconds: int | None) -> int | None:
        """The first place from ``start`` on where a chain of plausible records begins; None to the end of the file."""
        for here, until in stretches(start, self._octets.size - 16):
            captured = self._octets.run(here + self._captured_at, until + self._captured_at, self._u4)
            places = here + np.flatnonzero((captured > 0) & (captured <= MAX_PACKET_BYTES))
            places = places[self._plausible(places)]
            places = places[self._heads_chain(places, last_seconds)]
            if len(places):
                return int(places[0])
            if until - here == SEARCH_BYTES:
                self._octets.release(here, until)
        return None

    def _find(self, start: int, end: int) -> int | None:
        text = self._octets.text(start, end + 4)
        best: int | None = None
        tries = 0
        shift = 2 if self._layout.order == "<" else 0
        for pattern in self._patterns():
            at = text.find(pattern, shift)
            while at >= 0 and tries < MAX_TRIES and (best is None or start + at - shift < best):
                tries += 1
                if self._is_chain(start + at - shift):
                    best = start + at - shift
                    break
                at = text.find(pattern, at + 1)
        return best if best is None or best < end else None

    def _patterns(self) -> list[bytes]:
        """The two high octets of the seconds, and their successors when these come within some hours."""
        high, low = divmod(self._near or 0, 65536)
        key = high, low > 0xA000
        if key not in self._packed:
            highs = (high, high + 1) if key[1] else (high,)
            self._packed[key] = [struct.pack(self._layout.order + "H", h & 0xFFFF) for h in highs]
        return self._packed[key]

    def _is_chain(self, offset: int) -> bool:
        near, here, size = self._near or 0, offset, self._octets.size
        for count in range(CHAIN):
            if here + self._layout.header_bytes > size:
                return count > 0 and here == size
            seconds, fraction, captured, original = self._fields(here)
            if fraction >= self._ticks or not 0 < captured <= original or captured > MAX_PACKET_BYTES:
                return False
            if abs(seconds - near) > NEAR_SECONDS:
                return False
            here += self._layout.header_bytes + captured
        return True

    def _fields(self, offset: int) -> tuple[int, int, int, int]:
        fields: tuple[int, int, int, int] = self._head.unpack_from(self._octets.buffer, offset)
        if self._captured_at == 12:
            return fields[0], fields[1], fields[3], fields[2]
        return fields

    def _seconds_at(self, offset: int) -> int:
        return self._fields(offset)[0] if offset + 16 <= self._octets.size else 0

    def _plausible(self, places: Int64) -> Bool:
        captured = self._octets.column(places + self._captured_at, self._u4)
        original = self._octets.column(places + self._original_at, self._u4)
        good: Bool = (captured > 0) & (captured <= original) & (captured <= MAX_PACKET_BYTES)
        good &= original <= 2 * MAX_PACKET_BYTES
        good &= self._octets.column(places + 4, self._u4) < self._ticks
        return good

    def _heads_chain(self, places: Int64, last_seconds: int | None) -> Bool:
        """Whether records with like times follow from each (plausible) place on: four, or fewer that end with the file.

        The file may end inside a record when at least its head is a second one that is plausible.
        """
        size, header_bytes = self._octets.size, self._layout.header_bytes
        reference = self._octets.column(places, self._u4)
        good = np.ones(len(places), np.bool_)
        if last_seconds is not None:
            good &= np.abs(reference - last_seconds) <= NEAR_SECONDS
        ended = np.zeros(len(places), np.bool_)
        here = places
        for count in range(CHAIN):
            seconds = self._octets.column(here, self._u4)
            fine = (here + header_bytes <= size) & self._plausible(here) & (np.abs(seconds - reference) <= NEAR_SECONDS)
            good &= ended | fine
            after = here + header_bytes + self._octets.column(here + self._captured_at, self._u4)
            good &= ended | (after <= size) | (count > 0)
            ended |= after + header_bytes > size
            here = np.where(ended, here, after)
        return good
