"""The snoop format of Solaris (RFC 1761): big-endian, whole records padded to 32 bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from netdiag.capture import chain
from netdiag.capture.facts import MAX_PACKET_BYTES, FileFacts
from netdiag.capture.plausible import NEAR_SECONDS, SEARCH_BYTES, stretches
from netdiag.wire.codes import UNASSIGNED_LINK_TYPE
from netdiag.wire.octets import BIG32, Octets
from netdiag.wire.tables import Bool, Int64, Interface, RawPackets, Window

MAGIC = b"snoop\0\0\0"
VERSION = 2
FILE_HEADER, RECORD_HEADER = 16, 24
MAX_PAD_BYTES = 64
"""Padding is to 32 bits; some writers align more."""
CHAIN = 4
"""Records that must follow each other before a place found by search is believed to be one."""
MAX_TRIES = 100
LINK_TYPES = {
    0x00: 1,  # IEEE 802.3
    0x02: 6,  # IEEE 802.5
    0x04: 1,  # Ethernet
    0x08: 10,  # FDDI
    0x0A: 107,  # frame relay
    0x11: 123,  # ATM with SunATM's header
    0x12: 100,  # classical IP over ATM: LLC
    0x18: 1,
    0x19: 1,
    0x1A: 242,  # IP over InfiniBand
    0x80000001: 228,  # IPv4 (tunnel interfaces)
    0x80000002: 229,  # IPv6
    0x80000004: 105,  # 802.11
    0x80000005: 226,  # ipnet
    0x80000007: 228,  # 6to4
}
"""RFC 1761 section 3 and Solaris' dlpi.h -> LINKTYPE_ values."""
HEADER = np.dtype(
    [
        ("original", ">u4"),
        ("captured", ">u4"),
        ("record", ">u4"),
        ("drops", ">u4"),
        ("seconds", ">u4"),
        ("microseconds", ">u4"),
    ]
)
LAYOUT = chain.Layout(
    header_bytes=RECORD_HEADER,
    length_at=8,
    overhead=0,
    shortest=RECORD_HEADER,
    longest=RECORD_HEADER + MAX_PACKET_BYTES + MAX_PAD_BYTES,
    order=">",
)


def is_snoop(octets: Octets) -> bool:
    """Version 2 (or cut before it); the later ones are another program's and have other records."""
    start = octets.text(0, 12)
    known = MAGIC + VERSION.to_bytes(4, "big")
    return len(start) >= 4 and known.startswith(start)


class SnoopReader:
    """Windows of one snoop file. ``facts`` fill up while it is read."""

    format = "snoop"

    def __init__(self, octets: Octets, facts: FileFacts) -> None:
        self._octets = octets
        self._facts = facts
        self._near = 0
        """Seconds of the last record that was read or found."""

    def windows(self, window_bytes: int) -> Iterator[Window]:
        """All packets, in file order."""
        size = self._octets.size
        if size < FILE_HEADER:
            self._facts.cut("the file is cut inside its header", 0)
            return
        self._read_file_header()
        position = FILE_HEADER
        while position < size:
            found = chain.walk(self._octets, LAYOUT, position, min(size, position + window_bytes), self._synchronise)
            rows = self._octets.rows(found.offsets, HEADER)
            wrong = rows["captured"] > rows["record"] - RECORD_HEADER
            if wrong.any():
                first = int(np.argmax(wrong))
                found = chain.Walk(found.offsets[:first], int(found.offsets[first]), chain.Stop.DAMAGED)
                rows = rows[:first]
            position = found.end
            if len(rows):
                self._near = int(rows["seconds"][-1])
                yield self._window(found, rows)
            if found.stop is not chain.Stop.LIMIT:
                position = self._after_damage(found)

    def _read_file_header(self) -> None:
        data_link = int.from_bytes(self._octets.text(12, 16), "big")
        link_type = LINK_TYPES.get(data_link, UNASSIGNED_LINK_TYPE | (data_link & 0xFF))
        self._facts.interfaces.append(Interface(link_type=link_type, snap_bytes=0, ticks_per_second=1_000_000))
        self._near = int(self._octets.rows(np.array([FILE_HEADER]), HEADER)["seconds"][0])

    def _window(self, found: chain.Walk, rows: NDArray[np.void]) -> Window:
        first = self._facts.packets + 1
        self._facts.packets += len(rows)
        # The count is cumulative (RFC 1761 section 4).
        self._facts.drops[0] = max(self._facts.drops.get(0, 0), int(rows["drops"].max()))
        packets = RawPackets(
            number=np.arange(first, first + len(rows), dtype=np.int64),
            captured_at=rows["seconds"].astype(np.int64) * 1_000_000_000 + rows["microseconds"].astype(np.int64) * 1000,
            data_offset=found.offsets + RECORD_HEADER,
            captured_bytes=rows["captured"].astype(np.int64),
            original_bytes=rows["original"].astype(np.int64),
            interface=np.zeros(len(rows), np.int32),
        )
        return Window(
            buffer=self._octets.buffer,
            packets=packets,
            interfaces=tuple(self._facts.interfaces),
            end_offset=found.end,
        )

    def _after_damage(self, found: chain.Walk) -> int:
        """Where to read on; the end of the file for nowhere."""
        size = self._octets.size
        if found.stop is not chain.Stop.DAMAGED and self._is_cut(found.end):
            self._facts.cut(f"the file is cut inside packet {self._facts.packets + 1}", found.end)
            return size
        after = self._resynchronise(found.end + 4)
        lost = "nothing readable follows" if after is None else f"reading goes on at byte {after}"
        self._facts.cut(f"damaged packet header ({found.stop.value}); {lost}", found.end)
        return size if after is None else after

    def _is_cut(self, offset: int) -> bool:
        """Whether a good record begins there that just reaches beyond the end of the file."""
        if offset + RECORD_HEADER > self._octets.size:
            return True
        return bool(self._plausible(np.array([offset]))[0])

    def _synchronise(self, start: int, end: int) -> int | None:
        """The first plausible record in the range, quickly: records stand on multiples of four."""
        width, here = 4096, start + (-start % 4)
        while here < end:
            until = min(end, here + width)
            place = self._first(here, until, MAX_TRIES)
            if place is not None:
                return place
            here, width = here + width, width * 4
        return None

    def _resynchronise(self, start: int) -> int | None:
        for here, until in stretches(start + (-start % 4), self._octets.size):
            place = self._first(here + (-here % 4), until, None)
            if place is not None:
                return place
            if until - here == SEARCH_BYTES:
                self._octets.release(here, until)
        return None

    def _first(self, start: int, end: int, tries: int | None) -> int | None:
        places = np.arange(start, max(start, end), 4, dtype=np.int64)
        places = places[self._octets.column(places + 8, BIG32) >= RECORD_HEADER]
        places = places[self._plausible(places)]
        return next((place for place in places[:tries].tolist() if self._is_chain(place)), None)

    def _plausible(self, places: Int64) -> Bool:
        rows = self._octets.rows(places, HEADER)
        captured, record = rows["captured"].astype(np.int64), rows["record"].astype(np.int64)
        pad = record - RECORD_HEADER - captured
        good: Bool = (pad >= 0) & (pad <= MAX_PAD_BYTES) & (captured > 0) & (captured <= MAX_PACKET_BYTES)
        good &= (captured <= rows["original"]) & (rows["microseconds"] < 1_000_000)
        good &= np.abs(rows["seconds"].astype(np.int64) - self._near) <= NEAR_SECONDS
        return good

    def _is_chain(self, place: int) -> bool:
        here = place
        for count in range(CHAIN):
            if here + RECORD_HEADER > self._octets.size:
                return count > 0
            if not self._plausible(np.array([here]))[0]:
                return False
            here += int.from_bytes(self._octets.text(here + 8, here + 12), "big")
        return True
