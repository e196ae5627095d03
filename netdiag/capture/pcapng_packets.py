"""Packet blocks of pcapng to rows: enhanced, simple, and the obsolete ones."""

from __future__ import annotations

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from netdiag.capture import pcapng_blocks
from netdiag.capture.facts import MAX_PACKET_BYTES, Comment, FileFacts
from netdiag.capture.pcapng_blocks import BlockType
from netdiag.capture.pcapng_times import nanoseconds
from netdiag.plain import plain
from netdiag.wire.octets import Octets
from netdiag.wire.tables import NONE, Bool, Int64, RawPackets, UInt64

ENHANCED_HEADER_BYTES, SIMPLE_HEADER_BYTES = 28, 12
"""From the beginning of the block to the packet's octets."""
TRAILER_BYTES = 4
OPTION_COMMENT, OPTION_DROPS = 1, 4
MAX_OPTIONS = 1000
"""Of one packet; what follows is ignored."""


def block_dtype(order: str) -> np.dtype[np.void]:
    """Enhanced (and, with other words, old) packet block up to the octets."""
    return np.dtype(
        {
            "names": ["type", "length", "interface", "high", "low", "captured", "original"],
            "formats": [order + "u4"] * 7,
            "offsets": [0, 4, 8, 12, 16, 20, 24],
            "itemsize": ENHANCED_HEADER_BYTES,
        }
    )


@plain(slots=True)
class Blocks:
    """The blocks of one stretch of one byte order."""

    offsets: Int64
    rows: NDArray[np.void]
    order: str
    base: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    """The section's first interface among all of the file, for each block."""

    def take(self, chosen: Int64) -> Blocks:
        """Some of them."""
        if len(chosen) == len(self.offsets):
            return self
        return Blocks(self.offsets[chosen], self.rows[chosen], self.order, self.base[chosen])


@plain(slots=True)
class _Fields:
    """What the rows will say; corrected kind by kind."""

    interface: Int64
    data: Int64
    captured: Int64
    original: Int64
    room: Int64
    """Octets that the block has for packet and options."""
    ticks: UInt64
    timed: Bool
    """Whether the block has a time stamp (and options)."""
    packet: Bool
    """Whether it is a packet at all."""


class PacketBlocks:
    """Reads the packet blocks of one file; notes damage, comments and drops in ``facts``."""

    def __init__(self, octets: Octets, facts: FileFacts) -> None:
        self._octets = octets
        self._facts = facts

    def read(self, blocks: Blocks, chosen: Int64) -> RawPackets:
        """Rows of the chosen blocks, all of which are frames."""
        blocks = blocks.take(chosen)
        facts, count = self._facts, len(chosen)
        number = np.arange(facts.packets + 1, facts.packets + 1 + count, dtype=np.int64)
        facts.packets += count
        fields = _enhanced(blocks)
        if not fields.timed.all():
            self._correct_others(blocks, fields)
        interface = self._known_interfaces(blocks, fields, number)
        self._check_lengths(blocks, fields, number)
        self._read_options(blocks, fields, number)
        return RawPackets(
            number=number,
            captured_at=nanoseconds(fields.ticks, interface, fields.timed, facts),
            data_offset=fields.data,
            captured_bytes=fields.captured,
            original_bytes=fields.original,
            interface=interface.astype(np.int32),
        )

    def _correct_others(self, blocks: Blocks, fields: _Fields) -> None:
        kind = blocks.rows["type"]
        old, simple = kind == BlockType.OLD_PACKET, kind == BlockType.SIMPLE_PACKET
        self._old_packets(blocks, fields, old)
        self._simple_packets(blocks, fields, simple)
        fields.timed |= old
        fields.packet = fields.timed | simple
        nothing = ~fields.packet
        fields.captured[nothing] = fields.original[nothing] = fields.room[nothing] = 0

    def _old_packets(self, blocks: Blocks, fields: _Fields, old: Bool) -> None:
        """16 bits of interface and 16 bits of drops (65535: unknown) where enhanced ones have 32 of interface."""
        half = np.dtype(blocks.order + "u2")
        fields.interface[old] = self._octets.column(blocks.offsets[old] + 8, half)
        drops = self._octets.column(blocks.offsets[old] + 10, half)
        self._count_drops(drops[drops != 0xFFFF])

    def _simple_packets(self, blocks: Blocks, fields: _Fields, simple: Bool) -> None:
        """They belong to the section's first interface, whose snap length says how much of them was captured."""
        interfaces = self._facts.interfaces
        snaps = np.array([i.snap_bytes or MAX_PACKET_BYTES for i in interfaces] or [MAX_PACKET_BYTES], np.int64)
        snap = snaps[np.minimum(blocks.base[simple], len(snaps) - 1)]
        length = blocks.rows["interface"][simple].astype(np.int64)  # the original length is at that place
        room = blocks.rows["length"][simple].astype(np.int64) - SIMPLE_HEADER_BYTES - TRAILER_BYTES
        fields.interface[simple] = 0
        fields.data[simple] = blocks.offsets[simple] + SIMPLE_HEADER_BYTES
        fields.room[simple] = room
        fields.original[simple] = length
        fields.captured[simple] = np.minimum(np.minimum(length, snap), room)

    def _known_interfaces(self, blocks: Blocks, fields: _Fields, number: Int64) -> Int64:
        """Numbers over all sections; NONE where the file describes no such interface."""
        whole = fields.interface + blocks.base
        unknown = (whole >= len(self._facts.interfaces)) & fields.packet
        if unknown.any():
            first = int(np.argmax(unknown))
            self._facts.anomaly(
                f"{int(unknown.sum())} packets name an interface that the file does not describe"
                f" (the first: {int(fields.interface[first])})",
                packet=int(number[first]),
            )
        elif fields.packet.all():
            return whole
        return np.where(fields.packet & ~unknown, whole, NONE)

    def _check_lengths(self, blocks: Blocks, fields: _Fields, number: Int64) -> None:
        """A packet cannot be longer than its block."""
        long = fields.captured > fields.room
        if long.any():
            first = int(np.argmax(long))
            self._facts.anomaly(
                f"{int(long.sum())} packets are longer than their blocks"
                f" (the first: {int(fields.captured[first])} bytes)",
                offset=int(blocks.offsets[first]),
                packet=int(number[first]),
            )
            fields.captured[long] = np.maximum(fields.room[long], 0)

    def _read_options(self, blocks: Blocks, fields: _Fields, number: Int64) -> None:
        """Comments and drop counts: all option lists advance together."""
        used = (fields.captured + 3) & -4
        going = np.flatnonzero(fields.timed & (fields.room - used >= 4))
        here = fields.data[going] + used[going]
        end = fields.data[going] + fields.room[going]
        half = np.dtype(blocks.order + "u2")
        for _ in range(MAX_OPTIONS):
            if not going.size:
                break
            code, length = self._octets.column(here, half), self._octets.column(here + 2, half)
            good = (code != 0) & (here + 4 + length <= end)
            commented = good & (code == OPTION_COMMENT)
            for frame, start, size in zip(
                number[going[commented]].tolist(),
                (here[commented] + 4).tolist(),
                length[commented].tolist(),
                strict=True,
            ):
                text = pcapng_blocks.text(self._octets.text(start, start + size))
                self._facts.comments.append(Comment(text, frame))
            with_drops = good & (code == OPTION_DROPS) & (length == 8)
            self._count_drops(self._octets.rows(here[with_drops] + 4, np.dtype(blocks.order + "u8")))
            here = here + 4 + ((length + 3) & -4)
            good &= here + 4 <= end
            going, here, end = going[good], here[good], end[good]

    def _count_drops(self, counts: Int64) -> None:
        if counts.size:
            self._facts.drops_between_packets = (self._facts.drops_between_packets or 0) + int(counts.sum())


def _enhanced(blocks: Blocks) -> _Fields:
    """All blocks read as if they were enhanced ones."""
    rows = blocks.rows
    timed = rows["type"] == BlockType.ENHANCED_PACKET
    return _Fields(
        interface=rows["interface"].astype(np.int64),
        data=blocks.offsets + ENHANCED_HEADER_BYTES,
        captured=rows["captured"].astype(np.int64),
        original=rows["original"].astype(np.int64),
        room=rows["length"].astype(np.int64) - ENHANCED_HEADER_BYTES - TRAILER_BYTES,
        ticks=(rows["high"].astype(np.uint64) << np.uint64(32)) | rows["low"],
        timed=timed,
        packet=timed,
    )
