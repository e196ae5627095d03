"""A tiny factory for wire octets: frames, conversations, pcap and pcapng files. Everything is built from scratch, nothing is read.

frames = tcp_conversation([(0, b"GET / HTTP/1.1\\r\\n\\r\\n"), (1, b"HTTP/1.1 204 No Content\\r\\n\\r\\n")])
window = window_of(frames)
path.write_bytes(pcap(frames))
"""

from __future__ import annotations

import io
import ipaddress
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from netdiag.capture.source import open_capture
from netdiag.wire.tables import Window

EPOCH_NS = 1_700_000_000_000_000_000
"""Where the factory's clocks start."""

FIN, SYN, RST, PSH, ACK, URG = 1, 2, 4, 8, 16, 32
TCP, UDP = 6, 17
ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_VLAN = 0x0800, 0x86DD, 0x8100

DESTINATION_MAC, SOURCE_MAC = b"\0\0\x5e\0\x53\2", b"\0\0\x5e\0\x53\1"
"""RFC 9542 section 2.1.2: for documentation."""

Timed = tuple[int, bytes]
"""A frame and when it was captured, ns since the epoch."""


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    padded = data + b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


# --- layers, inside out -------------------------------------------------------------------------------------------------------


def tcp(
    payload: bytes = b"",
    *,
    source_port: int = 40000,
    destination_port: int = 443,
    seq: int = 0,
    ack: int = 0,
    flags: int = ACK,
    window: int = 65535,
    options: bytes = b"",
) -> bytes:
    """A TCP segment; ``options`` are padded with NOP to 32 bits; the checksum is left 0."""
    options += b"\1" * (-len(options) % 4)
    offset_flags = (5 + len(options) // 4) << 12 | flags
    header = struct.pack(
        ">HHIIHHHH", source_port, destination_port, seq % 2**32, ack % 2**32, offset_flags, window, 0, 0
    )
    return header + options + payload


def udp(payload: bytes = b"", *, source_port: int = 40000, destination_port: int = 53) -> bytes:
    """A UDP datagram without checksum."""
    return struct.pack(">HHHH", source_port, destination_port, 8 + len(payload), 0) + payload


def ipv4(
    payload: bytes,
    *,
    source: str = "10.0.0.1",
    destination: str = "10.0.0.2",
    protocol: int = TCP,
    identification: int = 1,
    ttl: int = 64,
    fragment: int = 0x4000,
    options: bytes = b"",
    total_length: int | None = None,
) -> bytes:
    """An IPv4 packet; ``fragment`` is the whole flags and offset field."""
    options += b"\1" * (-len(options) % 4)
    ihl = 5 + len(options) // 4
    length = ihl * 4 + len(payload) if total_length is None else total_length
    addresses = ipaddress.IPv4Address(source).packed + ipaddress.IPv4Address(destination).packed
    head = (
        struct.pack(">BBHHHBBH", 0x40 | ihl, 0, length & 0xFFFF, identification, fragment, ttl, protocol, 0) + addresses
    )
    head += options
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + payload


def ipv6(
    payload: bytes,
    *,
    source: str = "2001:db8::1",
    destination: str = "2001:db8::2",
    next_header: int = TCP,
    hop_limit: int = 64,
    payload_length: int | None = None,
) -> bytes:
    """An IPv6 packet; extension headers go into ``payload``."""
    length = len(payload) if payload_length is None else payload_length
    addresses = ipaddress.IPv6Address(source).packed + ipaddress.IPv6Address(destination).packed
    return struct.pack(">IHBB", 0x60000000, length, next_header, hop_limit) + addresses + payload


def ip(payload: bytes, *, source: str, destination: str, protocol: int = TCP, identification: int = 1) -> bytes:
    """IPv4 or IPv6, as the addresses are."""
    if ":" in source:
        return ipv6(payload, source=source, destination=destination, next_header=protocol)
    return ipv4(payload, source=source, destination=destination, protocol=protocol, identification=identification)


def ethernet(packet: bytes, *, ethertype: int | None = None, vlans: Sequence[int] = ()) -> bytes:
    """An Ethernet frame (the type is taken from the IP version unless given), tagged with ``vlans``, outermost first."""
    if ethertype is None:
        ethertype = ETHERTYPE_IPV6 if packet[:1] and packet[0] >> 4 == 6 else ETHERTYPE_IPV4
    tags = b"".join(struct.pack(">HH", ETHERTYPE_VLAN, vlan) for vlan in vlans)
    return DESTINATION_MAC + SOURCE_MAC + tags + struct.pack(">H", ethertype) + packet


# --- conversations ------------------------------------------------------------------------------------------------------------


@dataclass
class TcpTalk:
    """Two ends of one TCP connection that write Ethernet frames with their times into ``frames``; each call advances the clock.

    ``seq`` counts in wire numbers. ``step_ns`` passes before each packet unless ``after_ns`` says otherwise.
    """

    client: tuple[str, int] = ("10.0.0.1", 40000)
    server: tuple[str, int] = ("10.0.0.2", 443)
    client_isn: int = 1000
    server_isn: int = 5000
    at_ns: int = EPOCH_NS
    step_ns: int = 1_000_000
    mss: int = 1460
    frames: list[Timed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.client_seq, self.server_seq = self.client_isn, self.server_isn
        self._identification = 0

    def packet(
        self,
        side: int,
        payload: bytes = b"",
        *,
        flags: int = ACK,
        seq: int | None = None,
        ack: int | None = None,
        window: int = 65535,
        options: bytes = b"",
        after_ns: int | None = None,
    ) -> bytes:
        """One packet of ``side`` (0 client, 1 server) at its current numbers; nothing but the clock is advanced."""
        self.at_ns += self.step_ns if after_ns is None else after_ns
        here, there = (self.client, self.server) if side == 0 else (self.server, self.client)
        mine, theirs = (self.client_seq, self.server_seq) if side == 0 else (self.server_seq, self.client_seq)
        self._identification = (self._identification + 1) % 65536
        segment = tcp(
            payload,
            source_port=here[1],
            destination_port=there[1],
            seq=mine if seq is None else seq,
            ack=(theirs if ack is None else ack) if flags & ACK else 0,
            flags=flags,
            window=window,
            options=options,
        )
        frame = ethernet(ip(segment, source=here[0], destination=there[0], identification=self._identification))
        self.frames.append((self.at_ns, frame))
        return frame

    def handshake(self, *, options: bytes = b"\x02\x04\x05\xb4", rtt_ns: int | None = None) -> TcpTalk:
        """SYN, SYN-ACK, ACK; ``rtt_ns`` lies between SYN and SYN-ACK."""
        self.packet(0, flags=SYN, options=options)
        self.client_seq += 1
        self.packet(1, flags=SYN | ACK, options=options, after_ns=rtt_ns)
        self.server_seq += 1
        self.packet(0)
        return self

    def say(self, side: int, data: bytes, *, acked: bool = True, after_ns: int | None = None) -> TcpTalk:
        """``data`` in segments of at most one MSS, the last with PSH; then the peer's ACK."""
        for start in range(0, len(data), self.mss):
            piece = data[start : start + self.mss]
            last = start + self.mss >= len(data)
            self.packet(side, piece, flags=ACK | (PSH if last else 0), after_ns=after_ns if start == 0 else None)
            self._advance(side, len(piece))
        if acked:
            self.packet(1 - side)
        return self

    def close(self) -> TcpTalk:
        """FIN from the client, FIN from the server, last ACK."""
        return self.finish(0)

    def finish(self, first: int, *, after_ns: int | None = None) -> TcpTalk:
        """FINs, that of ``first`` first, and the last ACK; ``after_ns`` passes before each packet of the server."""
        for side, flags in ((first, FIN | ACK), (1 - first, FIN | ACK), (first, ACK)):
            self.packet(side, flags=flags, after_ns=after_ns if side else None)
            if flags & FIN:
                self._advance(side, 1)
        return self

    def _advance(self, side: int, octets: int) -> None:
        if side == 0:
            self.client_seq = (self.client_seq + octets) % 2**32
        else:
            self.server_seq = (self.server_seq + octets) % 2**32


def tcp_conversation(
    turns: Iterable[tuple[int, bytes]] = (), *, closed: bool = True, talk: TcpTalk | None = None
) -> list[Timed]:
    """Handshake, then each (side, data) of ``turns``, then FINs: frames with times."""
    talk = talk or TcpTalk()
    talk.handshake()
    for side, data in turns:
        talk.say(side, data)
    return talk.close().frames if closed else talk.frames


def udp_frame(
    payload: bytes,
    *,
    source: tuple[str, int] = ("10.0.0.1", 40000),
    destination: tuple[str, int] = ("10.0.0.53", 53),
) -> bytes:
    """One UDP datagram in an Ethernet frame."""
    segment = udp(payload, source_port=source[1], destination_port=destination[1])
    return ethernet(ip(segment, source=source[0], destination=destination[0], protocol=UDP))


def timed(frames: Iterable[bytes], *, at_ns: int = EPOCH_NS, step_ns: int = 1_000_000) -> list[Timed]:
    """Frames with times ``step_ns`` apart."""
    return [(at_ns + index * step_ns, frame) for index, frame in enumerate(frames)]


# --- files --------------------------------------------------------------------------------------------------------------------


def pcap(
    packets: Iterable[Timed],
    *,
    link_type: int = 1,
    nanosecond: bool = True,
    big_endian: bool = False,
    snap_bytes: int = 262144,
) -> bytes:
    """A pcap file; frames longer than ``snap_bytes`` are cut."""
    order = ">" if big_endian else "<"
    magic = 0xA1B23C4D if nanosecond else 0xA1B2C3D4
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap_bytes, link_type)]
    for at_ns, frame in packets:
        seconds, rest = divmod(at_ns, 1_000_000_000)
        fraction = rest if nanosecond else rest // 1000
        kept = frame[:snap_bytes]
        out.append(struct.pack(order + "IIII", seconds, fraction, len(kept), len(frame)) + kept)
    return b"".join(out)


def snoop(packets: Iterable[Timed], *, data_link: int = 4, drops: int = 0, snap_bytes: int = 262144) -> bytes:
    """A snoop file (RFC 1761) whose last record says that so many packets were dropped."""
    out = [b"snoop\0\0\0" + struct.pack(">II", 2, data_link)]
    frames = list(packets)
    for number, (at_ns, frame) in enumerate(frames, 1):
        kept = frame[:snap_bytes]
        padded = kept + bytes(-len(kept) % 4)
        lost = drops if number == len(frames) else 0
        seconds, rest = divmod(at_ns, 1_000_000_000)
        out.append(
            struct.pack(">IIIIII", len(frame), len(kept), 24 + len(padded), lost, seconds, rest // 1000) + padded
        )
    return b"".join(out)


def option(code: int, value: bytes, *, order: str = "<") -> bytes:
    """One pcapng option, padded."""
    return struct.pack(order + "HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def block(kind: int, body: bytes, *, order: str = "<") -> bytes:
    """One pcapng block, padded, with both lengths."""
    body += b"\0" * (-len(body) % 4)
    total = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + total + body + total


def section_header(*, order: str = "<", options: bytes = b"") -> bytes:
    """SHB of unknown section length."""
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1) + options, order=order)


def interface_block(link_type: int = 1, *, order: str = "<", snap_bytes: int = 262144, options: bytes = b"") -> bytes:
    """IDB."""
    return block(1, struct.pack(order + "HHI", link_type, 0, snap_bytes) + options, order=order)


def packet_block(ticks: int, data: bytes, *, order: str = "<", interface: int = 0, options: bytes = b"") -> bytes:
    """EPB; ``ticks`` in the interface's resolution."""
    head = struct.pack(order + "IIIII", interface, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data))
    return block(6, head + data + b"\0" * (-len(data) % 4) + options, order=order)


def secrets_block(keylog: bytes, *, order: str = "<") -> bytes:
    """DSB with a TLS key log."""
    return block(10, struct.pack(order + "II", 0x544C534B, len(keylog)) + keylog, order=order)


def pcapng(
    packets: Iterable[Timed], *, link_type: int = 1, big_endian: bool = False, keylog: bytes | None = None
) -> bytes:
    """A pcapng file of one section and one interface with nanosecond resolution."""
    order = ">" if big_endian else "<"
    out = [
        section_header(order=order),
        interface_block(link_type, order=order, options=option(9, b"\x09", order=order) + option(0, b"", order=order)),
    ]
    if keylog is not None:
        out.append(secrets_block(keylog, order=order))
    out += [packet_block(at_ns, frame, order=order) for at_ns, frame in packets]
    return b"".join(out)


def window_of(packets: Iterable[Timed], *, link_type: int = 1) -> Window:
    """The one window of a small capture, over octets in memory."""
    return opened(pcap(packets, link_type=link_type))


def opened(raw: bytes) -> Window:
    """The one window of a small capture file."""
    (window,) = open_capture(io.BytesIO(raw)).windows()
    return window


def octets_at(window: Window, offset: int, count: int) -> bytes:
    """What a packet's offsets point at."""
    return bytes(window.buffer[offset : offset + count])
