"""Writes pcapng files: packets with comments, TLS secrets, drop statistics (draft-ietf-opsawg-pcapng)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from types import TracebackType
from typing import BinaryIO

from netdiag.capture.pcapng_blocks import TLS_KEY_LOG, BlockType
from netdiag.errors import OutputError
from netdiag.wire.tables import Interface

NANO = 1_000_000_000
SECTION_MAGIC = 0x1A2B3C4D
OPTION_END, OPTION_COMMENT = 0, 1
MAX_OPTION_BYTES = 65535


class PcapngWriter:
    """One section in little-endian order, written as it goes: what was written before an interruption is a readable file.

    The file is the caller's: ``close`` flushes it, nothing more. Secrets are written only by ``secrets``, in clear.
    """

    def __init__(
        self,
        file: BinaryIO,
        *,
        interfaces: Sequence[Interface],
        application: str = "netdiag",
        comment: str | None = None,
    ) -> None:
        self._file = file
        self._interfaces = tuple(interfaces)
        head = struct.pack("<IHHq", SECTION_MAGIC, 1, 0, -1)
        self._block(BlockType.SECTION, head + _options([_text(OPTION_COMMENT, comment), _text(4, application)]))
        for interface in self._interfaces:
            self._interface(interface)

    def packet(
        self,
        data: bytes,
        at_ns: int,
        *,
        interface: int = 0,
        original_bytes: int | None = None,
        comment: str | None = None,
    ) -> None:
        """One packet, captured ``at_ns`` (since the epoch); ``original_bytes`` where it was longer on the wire."""
        described = self._interfaces[interface]
        ticks = (at_ns - described.offset_s * NANO) * described.ticks_per_second // NANO
        if not 0 <= ticks < 2**64:
            raise OutputError(f"a packet's time ({at_ns} ns) does not fit into the file format")
        original = len(data) if original_bytes is None else original_bytes
        head = struct.pack("<IIIII", interface, ticks >> 32, ticks & 0xFFFFFFFF, len(data), original)
        self._block(BlockType.ENHANCED_PACKET, head + _padded(data) + _options([_text(OPTION_COMMENT, comment)]))

    def secrets(self, keylog: bytes) -> None:
        """TLS key log text. Write it before the packets that need it, as readers in one pass expect."""
        if keylog:
            self._block(BlockType.SECRETS, struct.pack("<II", TLS_KEY_LOG, len(keylog)) + _padded(keylog))

    def statistics(self, received: int | None, dropped: int | None, *, interface: int = 0, at_ns: int = 0) -> None:
        """What the system counted on an interface; a count that is not known is left out."""
        ticks = at_ns * self._interfaces[interface].ticks_per_second // NANO
        counts = [(code, count) for code, count in ((4, received), (5, dropped)) if count is not None]
        options = [struct.pack("<HHQ", code, 8, count) for code, count in counts]
        self._block(
            BlockType.STATISTICS, struct.pack("<III", interface, ticks >> 32, ticks & 0xFFFFFFFF) + _options(options)
        )

    def close(self) -> None:
        """Flush. Harmless to repeat."""
        if not self._file.closed:
            self._file.flush()

    def __enter__(self) -> PcapngWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _interface(self, interface: Interface) -> None:
        options = [_text(2, interface.name), struct.pack("<HHBxxx", 9, 1, _resolution(interface.ticks_per_second))]
        if interface.fcs_bytes:
            options.append(struct.pack("<HHBxxx", 13, 1, interface.fcs_bytes))
        if interface.offset_s:
            options.append(struct.pack("<HHq", 14, 8, interface.offset_s))
        self._block(
            BlockType.INTERFACE, struct.pack("<HHI", interface.link_type, 0, interface.snap_bytes) + _options(options)
        )

    def _block(self, kind: BlockType, body: bytes) -> None:
        total = struct.pack("<I", len(body) + 12)
        self._file.write(struct.pack("<I", kind) + total + body + total)


def _resolution(ticks_per_second: int) -> int:
    """``if_tsresol``: a power of ten, or of two with the top bit set. Raises ``ValueError`` for other rates."""
    for exponent in range(20):
        if ticks_per_second == 10**exponent:
            return exponent
    if ticks_per_second.bit_count() == 1:
        return 0x80 | (ticks_per_second.bit_length() - 1)
    raise ValueError(f"{ticks_per_second} ticks per second is neither a power of 10 nor of 2")


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def _text(code: int, value: str | None) -> bytes:
    """A UTF-8 option, cut to what an option can hold; nothing for None."""
    if value is None:
        return b""
    octets = value.encode("utf-8", "replace")[:MAX_OPTION_BYTES]
    octets = octets.decode("utf-8", "ignore").encode()
    return struct.pack("<HH", code, len(octets)) + _padded(octets)


def _options(options: Sequence[bytes]) -> bytes:
    """Options with their end mark; nothing at all when there are none."""
    joined = b"".join(options)
    return joined + struct.pack("<HH", OPTION_END, 0) if joined else b""
