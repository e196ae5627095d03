"""IP packets in fragments, each an Ethernet frame."""

from __future__ import annotations

import struct

from netdiag.wire.tables import Packets, Window
from tests.support.packets import (
    ethernet,
    ipv4,
    ipv6,
)


def fragments_v4(payload: bytes, size: int, *, protocol: int = 6, identification: int = 9) -> list[bytes]:
    """Ethernet frames with pieces of ``size`` octets (a multiple of 8)."""
    return [
        ethernet(
            ipv4(
                payload[start : start + size],
                protocol=protocol,
                identification=identification,
                fragment=(0x2000 if start + size < len(payload) else 0) | start // 8,
            )
        )
        for start in range(0, len(payload), size)
    ]


def fragments_v6(payload: bytes, size: int, *, protocol: int = 6, identification: int = 9) -> list[bytes]:
    return [
        ethernet(
            ipv6(
                struct.pack(">BBHI", protocol, 0, start | (start + size < len(payload)), identification)
                + payload[start : start + size],
                next_header=44,
            )
        )
        for start in range(0, len(payload), size)
    ]


def stream_of(packets: Packets, window: Window) -> bytes:
    """The payload that the rows carry, by sequence number."""
    octets: dict[int, int] = {}
    for row in range(len(packets)):
        start = int(packets.payload_offset[row])
        for index in range(int(packets.captured_payload_bytes[row])):
            octets[(int(packets.seq[row]) + index) % 2**32] = window.buffer[start + index]
    return bytes(octets[key] for key in sorted(octets))
