"""The blocks of pcapng other than packets, one at a time (draft-ietf-opsawg-pcapng section 4)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum

from netdiag.wire.tables import Interface

NANO = 1_000_000_000
OPTION_COMMENT = 1
TLS_KEY_LOG = 0x544C534B


class BlockType(IntEnum):
    """Values of the first word of a block."""

    INTERFACE = 1
    OLD_PACKET = 2
    SIMPLE_PACKET = 3
    NAMES = 4
    STATISTICS = 5
    ENHANCED_PACKET = 6
    IRIG = 7
    ARINC_429 = 8
    JOURNAL = 9
    """systemd journal export."""
    SECRETS = 10
    HONE_PROCESS = 0x101
    HONE_EVENT = 0x102
    SYSDIG_MACHINE = 0x201
    SYSDIG_EVENT = 0x204
    SYSDIG_EVENT_FLAGS = 0x208
    SYSDIG_EVENT_2 = 0x216
    SYSDIG_EVENT_FLAGS_2 = 0x217
    SYSDIG_EVENT_LARGE = 0x221
    SYSDIG_EVENT_FLAGS_LARGE = 0x222
    CUSTOM = 0x00000BAD
    CUSTOM_NO_COPY = 0x40000BAD
    SECTION = 0x0A0D0D0A


def options(body: bytes, start: int, order: str) -> Iterator[tuple[int, bytes]]:
    """(code, value) of each whole option from ``start`` to the end mark or the end of the block."""
    here = start
    while here + 4 <= len(body):
        code, length = struct.unpack_from(order + "HH", body, here)
        if code == 0 or here + 4 + length > len(body):
            return
        yield code, body[here + 4 : here + 4 + length]
        here += 4 + length + -length % 4


def text(value: bytes) -> str:
    """UTF-8 text of an option, without padding that some writers count in."""
    return value.rstrip(b"\0").decode("utf-8", "replace")


def comments(body: bytes, start: int, order: str) -> list[str]:
    """All comments among the options from ``start`` on."""
    return [text(value) for code, value in options(body, start, order) if code == OPTION_COMMENT]


def interface(body: bytes, order: str) -> Interface | None:
    """An interface description; None when it is too short to be one."""
    if len(body) < 8:
        return None
    link_type, _, snap_bytes = struct.unpack_from(order + "HHI", body)
    ticks, offset_s, fcs_bytes, name = 1_000_000, 0, 0, None
    for code, value in options(body, 8, order):
        if code == 2:
            name = text(value)
        elif code == 9 and len(value) >= 1:
            ticks = 1 << (value[0] & 0x7F) if value[0] & 0x80 else 10 ** value[0]
        elif code == 13 and len(value) >= 1:
            fcs_bytes = value[0]
        elif code == 14 and len(value) == 8:
            (offset_s,) = struct.unpack(order + "q", value)
    return Interface(
        link_type=link_type,
        snap_bytes=snap_bytes,
        ticks_per_second=ticks,
        name=name,
        offset_s=offset_s,
        fcs_bytes=fcs_bytes,
    )


def dropped(body: bytes, order: str) -> tuple[int, int | None] | None:
    """(interface, packets dropped by interface and system) of a statistics block; the count is None when it says nothing of drops."""
    if len(body) < 12:
        return None
    (number,) = struct.unpack_from(order + "I", body)
    counts = [
        struct.unpack(order + "Q", value)[0]
        for code, value in options(body, 12, order)
        if code in (5, 7) and len(value) == 8
    ]
    # 2^64 - 1 is what some writers put where they do not know.
    known = [count for count in counts if count != 2**64 - 1]
    return number, sum(known) if known else None


def secrets(body: bytes, order: str) -> bytes | None:
    """The TLS key log of a decryption secrets block; None for other kinds of secrets."""
    if len(body) < 8:
        return None
    kind, length = struct.unpack_from(order + "II", body)
    return body[8 : 8 + length] if kind == TLS_KEY_LOG else None
