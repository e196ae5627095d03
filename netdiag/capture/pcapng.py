"""The pcapng format: all sections, both byte orders, every block (draft-ietf-opsawg-pcapng).

Frame numbers are Wireshark's: it also shows custom blocks, journal entries and system calls as frames, so these have rows too (without
interface and time; they are counted as not decoded).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from netdiag.capture import chain, pcapng_blocks
from netdiag.capture.facts import Comment, FileFacts
from netdiag.capture.pcapng_blocks import BlockType
from netdiag.capture.pcapng_packets import Blocks, PacketBlocks, block_dtype
from netdiag.capture.plausible_blocks import BlockHeads
from netdiag.plain import plain
from netdiag.wire.octets import Octets
from netdiag.wire.tables import Bool, Int64, Window

MAX_BLOCK_BYTES = 16 << 20
FIRST_SPAN_BYTES = 1 << 18
"""How much is read at once (and one by one) just after damage or a change of byte order; doubled while it goes well."""
MAX_WINDOW_PACKETS = 1 << 17
MAGIC_LITTLE, MAGIC_BIG = b"\x4d\x3c\x2b\x1a", b"\x1a\x2b\x3c\x4d"
ODD_FRAMES = (
    BlockType.CUSTOM,
    BlockType.CUSTOM_NO_COPY,
    BlockType.JOURNAL,
    BlockType.SYSDIG_EVENT,
    BlockType.SYSDIG_EVENT_FLAGS,
    BlockType.SYSDIG_EVENT_2,
    BlockType.SYSDIG_EVENT_FLAGS_2,
    BlockType.SYSDIG_EVENT_LARGE,
    BlockType.SYSDIG_EVENT_FLAGS_LARGE,
)
PACKETS = (BlockType.ENHANCED_PACKET, BlockType.SIMPLE_PACKET, BlockType.OLD_PACKET)
FRAMES = frozenset(int(kind) for kind in PACKETS + ODD_FRAMES)
ENHANCED = int(BlockType.ENHANCED_PACKET)


def is_pcapng(octets: Octets) -> bool:
    """Whether the file begins with a section header (or with as much of one as there is)."""
    start = octets.text(0, 12)
    if start[:4] != b"\x0a\x0d\x0d\x0a":
        return False
    magic = start[8:12]
    return len(magic) < 4 or magic in (MAGIC_LITTLE, MAGIC_BIG)


@plain(slots=True)
class Section:
    """What holds from one section header to the next."""

    order: str
    first_interface: int
    """Its interface 0 among all of the file."""


class PcapngReader:
    """Windows of one pcapng file. ``facts`` fill up while it is read."""

    format = "pcapng"

    def __init__(self, octets: Octets, facts: FileFacts) -> None:
        self._octets = octets
        self._facts = facts
        self._section = Section(order="<", first_interface=0)
        self._packets = PacketBlocks(octets, facts)

    def windows(self, window_bytes: int) -> Iterator[Window]:
        """All packets, in file order."""
        position, span, size = 0, window_bytes, self._octets.size
        while position < size:
            self._read_order(position)
            order = self._section.order
            heads = BlockHeads(self._octets, order, MAX_BLOCK_BYTES)
            synchronise = heads.synchronise if span == window_bytes else None
            found = chain.walk(self._octets, _layout(order), position, min(size, position + span), synchronise)
            found, rows = self._within_one_order(found, self._octets.rows(found.offsets, block_dtype(order)))
            yield from self._windows(Blocks(found.offsets, rows, order), found.end)
            switched = found.stop is chain.Stop.LIMIT and found.end < min(size, position + span)
            position, span = found.end, min(window_bytes, FIRST_SPAN_BYTES if switched else span * 2)
            if found.stop is not chain.Stop.LIMIT:
                after = self._after_damage(found, heads)
                if after is None:
                    return
                position, span = after, min(window_bytes, FIRST_SPAN_BYTES)

    # --- where blocks are ---

    def _read_order(self, position: int) -> None:
        """At a section header: its byte order."""
        if self._octets.text(position, position + 4) == b"\x0a\x0d\x0d\x0a":
            magic = self._octets.text(position + 8, position + 12)
            self._section.order = ">" if magic == MAGIC_BIG else "<"

    def _within_one_order(self, found: chain.Walk, rows: NDArray[np.void]) -> tuple[chain.Walk, NDArray[np.void]]:
        """Only what comes before a block whose two lengths differ, or before a section of the other byte order."""
        octets, order = self._octets, self._section.order
        word = np.dtype(order + "u4")
        length = rows["length"].astype(np.int64)
        trailing = octets.column(found.offsets + length - 4, word) if not (length & 3).any() else self._trailing(found)
        bad = trailing != length
        at_section = np.flatnonzero(rows["type"] == BlockType.SECTION)
        own_magic = MAGIC_BIG if order == ">" else MAGIC_LITTLE
        for index in at_section.tolist():
            offset = int(found.offsets[index])
            if octets.text(offset + 8, offset + 12) != own_magic:
                bad[index] = True
                break
        if not bad.any():
            return found, rows
        first = int(np.argmax(bad))
        offset = int(found.offsets[first])
        other = MAGIC_LITTLE if order == ">" else MAGIC_BIG
        is_other_order = (
            octets.text(offset, offset + 4) == b"\x0a\x0d\x0d\x0a" and octets.text(offset + 8, offset + 12) == other
        )
        stop = chain.Stop.LIMIT if is_other_order else chain.Stop.DAMAGED
        return chain.Walk(found.offsets[:first], offset, stop), rows[:first]

    def _trailing(self, found: chain.Walk) -> Int64:
        """Trailing lengths where some writer forgot to pad its blocks."""
        following = np.append(found.offsets[1:], found.end)
        return self._octets.column(following - 4, np.dtype(self._section.order + "u4"))

    def _after_damage(self, found: chain.Walk, heads: BlockHeads) -> int | None:
        """Where to read on; None when there is nothing more."""
        other = ">" if self._section.order == "<" else "<"
        start = self._octets.text(found.end, found.end + 12)
        if start[:4] == b"\x0a\x0d\x0d\x0a" and start[8:12] == (MAGIC_BIG if other == ">" else MAGIC_LITTLE):
            return found.end
        if found.stop is not chain.Stop.DAMAGED and heads.is_cut(found.end):
            self._facts.cut(f"the file is cut inside a block after packet {self._facts.packets}", found.end)
            return None
        search_from = int(found.offsets[-1]) + 12 if len(found.offsets) else found.end + 4
        after = heads.resynchronise(search_from)
        lost = "nothing readable follows" if after is None else f"reading goes on at byte {after}"
        self._facts.cut(f"damaged block ({found.stop.value}); {lost}", found.end)
        return after

    # --- what they are ---

    def _windows(self, blocks: Blocks, end: int) -> Iterator[Window]:
        self._read_other_blocks(blocks)
        where = np.flatnonzero(_are_frames(blocks.rows["type"]))
        for first in range(0, len(where), MAX_WINDOW_PACKETS):
            chosen = where[first : first + MAX_WINDOW_PACKETS]
            packets = self._packets.read(blocks, chosen)
            whole = first + MAX_WINDOW_PACKETS >= len(where)
            yield Window(
                buffer=self._octets.buffer,
                packets=packets,
                interfaces=tuple(self._facts.interfaces),
                end_offset=end if whole else int(blocks.offsets[where[first + MAX_WINDOW_PACKETS]]),
            )

    def _read_other_blocks(self, blocks: Blocks) -> None:
        """Sections, interfaces, statistics and secrets, one by one; and which section each block belongs to."""
        types = blocks.rows["type"]
        base = np.full(len(types), self._section.first_interface, np.int64)
        for index in np.flatnonzero((types != BlockType.ENHANCED_PACKET) & (types != BlockType.SIMPLE_PACKET)).tolist():
            offset = int(blocks.offsets[index])
            length = int(blocks.rows["length"][index])
            kind = int(types[index])
            if kind == BlockType.SECTION:
                self._section.first_interface = len(self._facts.interfaces)
                base[index:] = self._section.first_interface
                self._check_version(offset, blocks.order)
                self._comments(self._octets.text(offset + 24, offset + length - 4), 0, blocks.order)
            elif kind in (BlockType.INTERFACE, BlockType.STATISTICS, BlockType.SECRETS):
                self._read_block(kind, self._octets.text(offset + 8, offset + length - 4), offset, blocks.order)
        blocks.base = base

    def _check_version(self, offset: int, order: str) -> None:
        """draft-ietf-opsawg-pcapng section 4.1: 1.0, and 1.2 that some write, are known; another may mean anything."""
        major, minor = struct.unpack(order + "HH", self._octets.text(offset + 12, offset + 16).ljust(4, b"\0"))
        if (major, minor) not in ((1, 0), (1, 2)):
            self._facts.anomaly(f"a section of version {major}.{minor} is read as one of 1.0", offset=offset)

    def _read_block(self, kind: int, body: bytes, offset: int, order: str) -> None:
        facts = self._facts
        if kind == BlockType.INTERFACE:
            interface = pcapng_blocks.interface(body, order)
            if interface is None:
                facts.anomaly("an interface description block is too short", offset=offset)
                return
            facts.interfaces.append(interface)
            self._comments(body, 8, order)
        elif kind == BlockType.STATISTICS:
            statistics = pcapng_blocks.dropped(body, order)
            if statistics is not None and statistics[1] is not None:
                facts.drops[self._section.first_interface + statistics[0]] = statistics[1]
            self._comments(body, 12, order)
        else:
            keylog = pcapng_blocks.secrets(body, order)
            if keylog:
                facts.secrets.append(keylog)

    def _comments(self, body: bytes, start: int, order: str, packet: int | None = None) -> None:
        self._facts.comments += [Comment(text, packet) for text in pcapng_blocks.comments(body, start, order)]


def _are_frames(types: NDArray[np.uint32]) -> Bool:
    """Blocks that Wireshark shows as frames."""
    frames: Bool = types == ENHANCED
    others = np.flatnonzero(~frames)
    if others.size:
        frames[others] = [kind in FRAMES for kind in types[others].tolist()]
    return frames


def _layout(order: str) -> chain.Layout:
    return chain.Layout(
        header_bytes=12, length_at=4, overhead=0, shortest=12, longest=MAX_BLOCK_BYTES, order=order, align=4
    )
