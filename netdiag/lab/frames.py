"""As much of an Ethernet frame as the link's rules ask for, and a forged RST. Octets in, facts out."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass

from netdiag.wire.tcp_flags import ACK, FIN, RST, SYN

_ETHERTYPE_IPV4, _ETHERTYPE_IPV6 = 0x0800, 0x86DD
_TCP, _UDP = 6, 17
FORGED_TTL = 57
"""A hop limit and (IPv4) identification unlike those of real peers on the lab's links, as a middlebox would leave them."""
FORGED_IP_ID = 0xBEEF


@dataclass(frozen=True, slots=True)
class FrameFacts:
    """What the rules match on. ``kind`` is one of ``path.PACKET_KINDS`` other than ``any``, or ``other``."""

    kind: str
    ip_bytes: int
    is_ip: bool = False
    source: bytes = b""
    destination: bytes = b""
    ports: tuple[int, int] = (0, 0)
    flow: bytes | None = None
    """The flow's key, the same for both directions; None for anything but TCP and UDP."""
    network: int = 14
    transport: int = 0
    payload_bytes: int = 0
    seq: int = 0
    """TCP sequence number."""

    @classmethod
    def of(cls, frame: bytes) -> FrameFacts:
        """Never raises: what is too short or not IP is ``other``."""
        if len(frame) < 34:
            return cls("other", 0)
        (ethertype,) = struct.unpack_from("!H", frame, 12)
        if ethertype == _ETHERTYPE_IPV4:
            size, protocol = struct.unpack_from("!H", frame, 16)[0], frame[23]
            return cls._transport(frame, protocol, 14 + (frame[14] & 15) * 4, size, frame[26:30], frame[30:34])
        if ethertype == _ETHERTYPE_IPV6 and len(frame) >= 54:
            size = 40 + struct.unpack_from("!H", frame, 18)[0]
            return cls._transport(frame, frame[20], 54, size, frame[22:38], frame[38:54])
        return cls("other", 0)

    @classmethod
    def _transport(
        cls, frame: bytes, protocol: int, start: int, size: int, source: bytes, destination: bytes
    ) -> FrameFacts:
        if protocol not in (_TCP, _UDP) or len(frame) < start + 8:
            return cls("other", size, True, source, destination)
        ports = struct.unpack_from("!HH", frame, start)
        ends = sorted((source + frame[start : start + 2], destination + frame[start + 2 : start + 4]))
        kind, payload = ("udp", 0) if protocol == _UDP else _tcp_kind(frame, start, size)
        seq = int.from_bytes(frame[start + 4 : start + 8], "big") if protocol == _TCP else 0
        return cls(kind, size, True, source, destination, ports, ends[0] + ends[1], 14, start, payload, seq)

    def matches(self, what: str, address: str | None, port: int | None) -> bool:
        """Whether a rule is about this frame; ``any`` is any IP packet."""
        if not self.is_ip or (what not in ("any", self.kind)):
            return False
        if port is not None and port not in self.ports:
            return False
        return address is None or ipaddress.ip_address(address).packed in (self.source, self.destination)


def _tcp_kind(frame: bytes, start: int, size: int) -> tuple[str, int]:
    if len(frame) < start + 20:
        return "other", 0
    flags = frame[start + 13]
    payload = size - (start - 14) - (frame[start + 12] >> 4) * 4
    for kind, mask, value in (("rst", RST, RST), ("syn", SYN | ACK, SYN), ("syn-ack", SYN | ACK, SYN | ACK)):
        if flags & mask == value:
            return kind, payload
    if payload > 0:
        return "data", payload
    return ("fin" if flags & FIN else "ack"), 0


def reset_for(frame: bytes, facts: FrameFacts) -> bytes:
    """A RST that the receiver of ``frame`` accepts as coming from its sender (RFC 9293 section 3.5.2), with a foreign hop limit."""
    start = facts.transport
    tcp = bytearray(frame[start : start + 20])
    tcp[12], tcp[13] = 0x50, RST | ACK
    tcp[14:20] = bytes(6)
    version6 = len(facts.source) == 16
    head = bytearray(frame[14:54] if version6 else frame[14:34])
    if version6:
        struct.pack_into("!HBB", head, 4, 20, _TCP, FORGED_TTL)
    else:
        head[0] = 0x45
        struct.pack_into("!HH", head, 2, 40, FORGED_IP_ID)
        head[8] = FORGED_TTL
        struct.pack_into("!H", head, 10, 0)
        struct.pack_into("!H", head, 10, checksum(bytes(head)))
    pseudo = facts.source + facts.destination + struct.pack("!IHBB", 20, 0, 0, _TCP)
    struct.pack_into("!H", tcp, 16, checksum(pseudo + bytes(tcp)))
    return frame[:14] + bytes(head) + bytes(tcp)


def checksum(octets: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    if len(octets) % 2:
        octets += b"\0"
    total: int = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return int(~total & 0xFFFF)
