"""TCP segments and UDP datagrams as Ethernet frames, and back."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from netdiag.lab.frames import checksum

TCP, UDP = 6, 17
ETHERNET_BYTES = 14
_ETHERTYPE = {4: b"\x08\x00", 16: b"\x86\xdd"}
_MAC = (b"\x02\x00\x00\x00\x00\x01", b"\x02\x00\x00\x00\x00\x02")
"""Locally administered; which is which is told by the addresses, the smaller first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One TCP segment; addresses are packed (4 or 16 octets)."""

    source: bytes
    destination: bytes
    source_port: int
    destination_port: int
    seq: int
    ack: int
    flags: int
    window: int
    options: bytes = b""
    payload: bytes = b""
    ip_id: int = 0
    ttl: int = 64

    def frame(self) -> bytes:
        """As an Ethernet frame, checksums right."""
        size = 20 + len(self.options)
        head = struct.pack(
            "!HHIIBBHHH",
            self.source_port,
            self.destination_port,
            self.seq & 0xFFFFFFFF,
            self.ack & 0xFFFFFFFF,
            size << 2,
            self.flags,
            self.window,
            0,
            0,
        )
        body = bytearray(head + self.options + self.payload)
        struct.pack_into("!H", body, 16, _transport_checksum(self.source, self.destination, TCP, bytes(body)))
        return packet(self.source, self.destination, TCP, bytes(body), ip_id=self.ip_id, ttl=self.ttl)


@dataclass(frozen=True, slots=True, kw_only=True)
class Datagram:
    """One UDP datagram."""

    source: bytes
    destination: bytes
    source_port: int
    destination_port: int
    payload: bytes
    ip_id: int = 0

    def frame(self) -> bytes:
        """As an Ethernet frame, checksums right (RFC 768: a sum of 0 is sent as all ones)."""
        body = bytearray(
            struct.pack("!HHHH", self.source_port, self.destination_port, 8 + len(self.payload), 0) + self.payload
        )
        total = _transport_checksum(self.source, self.destination, UDP, bytes(body)) or 0xFFFF
        struct.pack_into("!H", body, 6, total)
        return packet(self.source, self.destination, UDP, bytes(body), ip_id=self.ip_id, ttl=64)


def packet(source: bytes, destination: bytes, protocol: int, body: bytes, *, ip_id: int, ttl: int) -> bytes:
    """IP (by the length of the addresses) and Ethernet around a transport header."""
    if len(source) == 4:
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), ip_id, 0x4000, ttl, protocol, 0) + source + destination
        head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    else:
        head = struct.pack("!IHBB", 6 << 28, len(body), protocol, ttl) + source + destination
    macs = _MAC if source < destination else _MAC[::-1]
    return macs[1] + macs[0] + _ETHERTYPE[len(source)] + head + body


def parse(frame: bytes) -> Segment | Datagram | None:
    """The inverse, for frames that this module (or the link's forger of resets) made; None for anything else."""
    version = frame[ETHERNET_BYTES] >> 4
    if version == 4:
        start, protocol = ETHERNET_BYTES + 20, frame[ETHERNET_BYTES + 9]
        source, destination = frame[start - 8 : start - 4], frame[start - 4 : start]
        ip_id, ttl = struct.unpack_from("!H2xB", frame, ETHERNET_BYTES + 4)
    else:
        start, protocol = ETHERNET_BYTES + 40, frame[ETHERNET_BYTES + 6]
        source, destination = frame[start - 32 : start - 16], frame[start - 16 : start]
        ip_id, ttl = 0, frame[ETHERNET_BYTES + 7]
    if protocol == UDP:
        ports = struct.unpack_from("!HH", frame, start)
        return Datagram(
            source=source,
            destination=destination,
            source_port=ports[0],
            destination_port=ports[1],
            payload=frame[start + 8 :],
            ip_id=ip_id,
        )
    if protocol != TCP:
        return None
    source_port, destination_port, seq, ack, size, flags, window = struct.unpack_from("!HHIIBBH", frame, start)
    options_end = start + (size >> 2)
    return Segment(
        source=source,
        destination=destination,
        source_port=source_port,
        destination_port=destination_port,
        seq=seq,
        ack=ack,
        flags=flags,
        window=window,
        options=frame[start + 20 : options_end],
        payload=frame[options_end:],
        ip_id=ip_id,
        ttl=ttl,
    )


def _transport_checksum(source: bytes, destination: bytes, protocol: int, body: bytes) -> int:
    return checksum(source + destination + struct.pack("!IBBH", len(body), 0, 0, protocol) + body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """TCP options that these hosts know (RFC 9293 section 3.2, RFC 7323, RFC 2018)."""

    mss: int | None = None
    window_scale: int | None = None
    sack_permitted: bool = False
    sack: tuple[tuple[int, int], ...] = ()
    """Left and right edges as sequence numbers."""

    def encode(self) -> bytes:
        """Padded with NOP to a multiple of four octets."""
        out = b""
        if self.mss is not None:
            out += struct.pack("!BBH", 2, 4, self.mss)
        if self.sack_permitted:
            out += b"\x04\x02"
        if self.window_scale is not None:
            out += struct.pack("!BBB", 3, 3, self.window_scale)
        if self.sack:
            out += struct.pack("!BB", 5, 2 + 8 * len(self.sack))
            out += b"".join(struct.pack("!II", left & 0xFFFFFFFF, right & 0xFFFFFFFF) for left, right in self.sack)
        return b"\x01" * (-len(out) % 4) + out

    @staticmethod
    def decode(data: bytes) -> Options:
        """What is there; anything unknown is skipped."""
        found: dict[int, bytes] = {}
        place = 0
        while place < len(data) and data[place]:
            if data[place] == 1:
                place += 1
                continue
            size = data[place + 1]
            found[data[place]] = data[place + 2 : place + size]
            place += size
        edges = struct.unpack(f"!{len(found.get(5, b'')) // 4}I", found.get(5, b""))
        return Options(
            mss=int.from_bytes(found[2], "big") if 2 in found else None,
            window_scale=found[3][0] if 3 in found else None,
            sack_permitted=4 in found,
            sack=tuple(zip(edges[::2], edges[1::2], strict=True)),
        )
