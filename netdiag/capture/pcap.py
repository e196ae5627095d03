"""The pcap format: microseconds and nanoseconds, both byte orders, and its historic variants (draft-ietf-opsawg-pcap)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netdiag.capture import chain
from netdiag.capture.facts import MAX_PACKET_BYTES, FileFacts
from netdiag.capture.plausible import NEAR_SECONDS, PcapHeads
from netdiag.wire.octets import Octets
from netdiag.wire.tables import Bool, Int64, Interface, RawPackets, Window

MICRO, NANO = 1_000_000, 1_000_000_000
FIRST_SPAN_BYTES = 1 << 18
"""How much is read at once (and one by one) just after damage; doubled while it goes well."""
MAX_WINDOW_PACKETS = 1 << 17
LEAST_RECORDS = 3
"""That must make sense before a file is taken for a variant."""
DOUBTFUL_RECORDS = 8
"""How many records before damage are doubted when their times are odd."""


@dataclass(frozen=True, slots=True)
class Magic:
    """What the first four octets say."""

    name: str
    order: str
    ticks_per_second: int
    record_headers: tuple[int, ...] = (16,)
    """Possible lengths of a record header, likeliest first."""
    file_header: int = 24


def _magics() -> dict[bytes, Magic]:
    kinds = [
        # With the standard number: as patched on 1999-04-17 (24 octets) and by Nokia (20).
        (0xA1B2C3D4, "pcap", MICRO, (16, 24, 20), 24),
        (0xA1B23C4D, "pcap-ns", NANO, (16,), 24),
        # Alexey Kuznetzov's patches: ifindex, protocol, packet type; that of 1999-09-15 also had two CPU numbers.
        (0xA1B2CD34, "pcap-modified", MICRO, (24, 28), 24),
        # Ixia's hardware and software captures: the file header is four octets longer.
        (0x1C0001AC, "pcap-ixia", NANO, (16,), 28),
        (0x1C0001AB, "pcap-ixia", MICRO, (16,), 28),
    ]
    return {
        struct.pack(order + "I", number): Magic(name, order, ticks, headers, file_header)
        for number, name, ticks, headers, file_header in kinds
        for order in "<>"
    }


MAGICS = _magics()


def header_dtype(order: str, *, swapped: bool = False) -> np.dtype[np.void]:
    """Record header; before version 2.3 the two lengths were the other way round."""
    captured, original = (12, 8) if swapped else (8, 12)
    return np.dtype(
        {
            "names": ["seconds", "fraction", "captured", "original"],
            "formats": [order + "u4"] * 4,
            "offsets": [0, 4, captured, original],
            "itemsize": 16,
        }
    )


class PcapReader:
    """Windows of one pcap file. ``facts`` fill up while it is read."""

    def __init__(self, octets: Octets, facts: FileFacts) -> None:
        self._octets = octets
        self._facts = facts
        self._magic = MAGICS[octets.text(0, 4)]
        self._last: tuple[int, int] | tuple[None, None] = (None, None)
        """Offset and seconds of the last record that was read."""
        self.format = self._magic.name

    def windows(self, window_bytes: int) -> Iterator[Window]:
        """All packets, in file order."""
        octets, facts, magic = self._octets, self._facts, self._magic
        if octets.size < magic.file_header:
            facts.cut("the file is cut inside its header", 0)
            return
        swapped = self._read_file_header()
        record_header = self._record_header(swapped)
        layout = chain.Layout(
            header_bytes=record_header,
            length_at=12 if swapped else 8,
            overhead=record_header,
            shortest=0,
            longest=MAX_PACKET_BYTES,
            order=magic.order,
        )
        heads = PcapHeads(octets, layout, magic.ticks_per_second, swapped=swapped)
        yield from self._walk(layout, heads, window_bytes, header_dtype(magic.order, swapped=swapped))

    def _read_file_header(self) -> bool:
        """Note the interface; says whether the records' lengths are swapped."""
        major, minor, _, _, snap_bytes, network = struct.unpack_from(
            self._magic.order + "HHiIII", self._octets.text(4, 24)
        )
        fcs_bytes = (network >> 28) * 2 if network & 0x0400_0000 else 0
        self._facts.interfaces.append(
            Interface(
                link_type=network & 0xFFFF,
                snap_bytes=snap_bytes,
                ticks_per_second=self._magic.ticks_per_second,
                fcs_bytes=fcs_bytes,
            )
        )
        if (major, minor) == (2, 3):  # written both ways
            captured, original = struct.unpack(self._magic.order + "II", self._octets.text(32, 40).ljust(8, b"\0"))
            return bool(captured > original)
        return bool((major == 2 and minor < 3) or major == 543)  # DG/UX

    def _record_header(self, swapped: bool) -> int:
        """The length of record headers: another than the usual one only if that makes no sense, and the other makes more."""
        first, *others = self._magic.record_headers
        counts = {
            header: PcapHeads.count(self._octets, self._magic.file_header, self._magic.order, header, swapped)
            for header in (first, *others)
        }
        best = max(others, key=lambda header: counts[header], default=first)
        return best if counts[best] > counts[first] and counts[best] >= LEAST_RECORDS else first

    def _walk(
        self, layout: chain.Layout, heads: PcapHeads, window_bytes: int, dtype: np.dtype[np.void]
    ) -> Iterator[Window]:
        size = self._octets.size
        position, span = self._magic.file_header, window_bytes
        while position < size:
            synchronise = heads.synchronise if span == window_bytes else None
            found = chain.walk(self._octets, layout, position, min(size, position + span), synchronise)
            found, rows = _before_damage(found, self._octets.rows(found.offsets, dtype))
            position, span = found.end, min(window_bytes, span * 2)
            if found.stop is not chain.Stop.LIMIT:
                rows, position = self._after_damage(found, rows, layout, heads)
                span = min(window_bytes, FIRST_SPAN_BYTES)
                found = chain.Walk(found.offsets[: len(rows)], found.end, found.stop)
            yield from self._windows(found, rows, layout)
            if len(rows):
                self._last = int(found.offsets[-1]), int(rows["seconds"][-1])

    def _windows(self, found: chain.Walk, rows: NDArray[np.void], layout: chain.Layout) -> Iterator[Window]:
        for first in range(0, len(rows), MAX_WINDOW_PACKETS):
            part = slice(first, first + MAX_WINDOW_PACKETS)
            packets = self._packets(found.offsets[part], rows[part], layout)
            whole = first + MAX_WINDOW_PACKETS >= len(rows)
            end = found.end if whole else int(found.offsets[part.stop])
            yield Window(
                buffer=self._octets.buffer, packets=packets, interfaces=tuple(self._facts.interfaces), end_offset=end
            )

    def _packets(self, offsets: Int64, rows: NDArray[np.void], layout: chain.Layout) -> RawPackets:
        count = len(offsets)
        first = self._facts.packets + 1
        self._facts.packets += count
        to_ns = NANO // self._magic.ticks_per_second
        return RawPackets(
            number=np.arange(first, first + count, dtype=np.int64),
            captured_at=rows["seconds"].astype(np.int64) * NANO + rows["fraction"].astype(np.int64) * to_ns,
            data_offset=offsets + layout.header_bytes,
            captured_bytes=rows["captured"].astype(np.int64),
            original_bytes=rows["original"].astype(np.int64),
            interface=np.zeros(count, np.int32),
        )

    def _after_damage(
        self, found: chain.Walk, rows: NDArray[np.void], layout: chain.Layout, heads: PcapHeads
    ) -> tuple[NDArray[np.void], int]:
        """The rows to believe, and where to read on after the walk stopped before the end of the file (its end: nowhere).

        The damage may be in the length of an earlier record: then what follows begins inside its octets, and records that were read
        behind it are none. They are given up only when a better chain is found.
        """
        believed = len(rows) - _doubtful_at_the_end(rows)
        for count in dict.fromkeys((believed, len(rows))):
            end = found.end if count == len(rows) else int(found.offsets[count])
            last, seconds = (int(found.offsets[count - 1]), int(rows["seconds"][count - 1])) if count else self._last
            if count == len(rows) and found.stop is not chain.Stop.DAMAGED and heads.is_cut(end, seconds):
                self._facts.cut(f"the file is cut inside packet {self._facts.packets + count + 1}", end)
                return rows, self._octets.size
            after = heads.resynchronise(end + 1 if last is None else last + layout.header_bytes, seconds)
            if after is not None:
                self._facts.cut(_describe(found, after), end)
                rows = rows[:count]
                if count and last is not None:
                    rows["captured"][-1] = min(int(rows["captured"][-1]), after - last - layout.header_bytes)
                return rows, after
        self._facts.cut(_describe(found, None), found.end)
        return rows, self._octets.size


def _describe(found: chain.Walk, after: int | None) -> str:
    lost = "nothing readable follows" if after is None else f"reading goes on at byte {after}"
    return f"damaged packet header ({found.stop.value}); {lost}"


def _doubtful_at_the_end(rows: NDArray[np.void]) -> int:
    """How many of the last few records have a time far from all of the few before them. One odd time alone does not matter: where the
    next record's time is like the earlier ones', the lengths led to a record."""
    seconds = rows["seconds"][-1 - DOUBTFUL_RECORDS :].astype(np.int64)
    near = np.tril(np.abs(seconds[:, np.newaxis] - seconds) <= NEAR_SECONDS, -1).any(axis=1)
    near[:1] = True
    return int(np.argmax(near[::-1])) if len(near) else 0


def _before_damage(found: chain.Walk, rows: NDArray[np.void]) -> tuple[chain.Walk, NDArray[np.void]]:
    """Only what comes before records that cannot be packets although their lengths are possible."""
    damaged = _never_written(rows) | _nonsense(rows)
    if not damaged.any():
        return found, rows
    first = int(np.argmax(damaged))
    stopped = chain.Walk(found.offsets[:first], int(found.offsets[first]), chain.Stop.DAMAGED)
    return stopped, rows[:first]


def _never_written(rows: NDArray[np.void]) -> Bool:
    """A run of empty records at time zero: octets that were never written (a crash, a sparse file)."""
    empty: Bool = (rows["captured"] == 0) & (rows["original"] == 0)
    if not empty.any():
        return empty
    empty &= (rows["seconds"] == 0) & (rows["fraction"] == 0)
    run = empty.copy()
    for ahead in (1, 2, 3):
        run[:-ahead] &= empty[ahead:]
        run[-ahead:] = False
    return run


def _nonsense(rows: NDArray[np.void]) -> Bool:
    """More captured than was sent, at a time far from the record before: the end of a damaged packet, read as a header."""
    longer: Bool = rows["captured"] > rows["original"]
    if longer.any():
        seconds = rows["seconds"].astype(np.int64)
        longer &= np.abs(np.diff(seconds, prepend=seconds[:1])) > NEAR_SECONDS
    return longer
