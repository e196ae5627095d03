"""The same TCP segment in every encapsulation that netdiag takes off: (LINKTYPE_, frame) by name."""

from __future__ import annotations

import struct

from tests.support.packets import ACK, PSH, ethernet, ipv4, ipv6, tcp, udp

PAYLOAD = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
SEQ, SOURCE_PORT, DESTINATION_PORT = 0x01020304, 40001, 8080

SEGMENT = tcp(PAYLOAD, source_port=SOURCE_PORT, destination_port=DESTINATION_PORT, seq=SEQ, ack=7, flags=ACK | PSH)
FOUR = ipv4(SEGMENT, source="192.0.2.1", destination="198.51.100.2", ttl=61, identification=77)
SIX = ipv6(SEGMENT, source="2001:db8::a", destination="2001:db8::b", hop_limit=61)
SNAP = b"\xaa\xaa\x03\0\0\0\x08\0"


def outer_udp(port: int, payload: bytes, *, source_port: int = 50000) -> bytes:
    """An outer Ethernet, IPv4 and UDP around a tunnel."""
    datagram = udp(payload, source_port=source_port, destination_port=port)
    return ethernet(ipv4(datagram, source="203.0.113.1", destination="203.0.113.2", protocol=17))


def outer_ip(protocol: int, payload: bytes) -> bytes:
    """An outer Ethernet and IPv4 around a protocol."""
    return ethernet(ipv4(payload, source="203.0.113.1", destination="203.0.113.2", protocol=protocol))


def extension(next_header: int, words: int = 0) -> bytes:
    """An IPv6 extension header of 8 + 8 × ``words`` octets, full of padding options."""
    return bytes((next_header, words, 1, 4 + 8 * words)) + bytes(4 + 8 * words)


def wlan(payload: bytes, *, control: int, quality: bytes = b"", extra: bytes = b"") -> bytes:
    """An 802.11 data frame."""
    return struct.pack("<HH", control, 0) + bytes(18) + b"\0\0" + extra + quality + payload


def pktap(inner: bytes, link_type: int) -> bytes:
    """Apple's header."""
    return struct.pack("<III", 108, 1, link_type) + bytes(96) + inner


ETHERNET = ethernet(FOUR)
RADIOTAP = struct.pack("<BBHI", 0, 0, 8, 0)
RADIOTAP_PADDED = struct.pack("<BBHIQB", 0, 0, 17, 3, 1, 0x20)
RADIOTAP_TWO_WORDS = struct.pack("<BBHII", 0, 0, 12, 0x80000000, 0)

ENCAPSULATIONS: dict[str, tuple[int, bytes]] = {
    "ethernet": (1, ETHERNET),
    "ethernet, ipv6": (1, ethernet(SIX)),
    "ethernet, trailer": (1, ETHERNET + bytes(12)),
    "vlan": (1, ethernet(FOUR, vlans=[5])),
    "vlan, ipv6": (1, ethernet(SIX, vlans=[5])),
    "qinq": (1, ETHERNET[:12] + b"\x88\xa8\x00\x05\x81\x00\x00\x06\x08\x00" + FOUR),
    "mpls": (1, ethernet(b"\0\x01\0\x40" + b"\0\x02\x01\x40" + FOUR, ethertype=0x8847)),
    "mpls pseudowire with control word": (1, ethernet(b"\0\x01\x01\x40" + bytes(4) + ETHERNET, ethertype=0x8847)),
    "pppoe": (1, ethernet(struct.pack(">BBHHH", 0x11, 0, 1, len(FOUR) + 2, 0x21) + FOUR, ethertype=0x8864)),
    "pppoe, ipv6": (1, ethernet(struct.pack(">BBHHH", 0x11, 0, 1, len(SIX) + 2, 0x57) + SIX, ethertype=0x8864)),
    "802.3 snap": (1, ETHERNET[:12] + struct.pack(">H", 8 + len(FOUR)) + SNAP + FOUR),
    "802.1ah": (1, ethernet(bytes(4) + ETHERNET, ethertype=0x88E7)),
    "vn-tag": (1, ethernet(bytes(4) + b"\x08\0" + FOUR, ethertype=0x8926)),
    "null, little-endian": (0, struct.pack("<I", 2) + FOUR),
    "null, big-endian": (0, struct.pack(">I", 2) + FOUR),
    "null, darwin ipv6": (0, struct.pack("<I", 30) + SIX),
    "loop": (108, struct.pack(">I", 2) + FOUR),
    "loop, openbsd ipv6": (108, struct.pack(">I", 24) + SIX),
    "raw 12": (12, FOUR),
    "raw 101": (101, FOUR),
    "raw 101, ipv6": (101, SIX),
    "raw 228": (228, FOUR),
    "raw 229": (229, SIX),
    "linux cooked": (113, struct.pack(">HHH", 0, 1, 6) + bytes(8) + b"\x08\0" + FOUR),
    "linux cooked, vlan": (113, struct.pack(">HHH", 0, 1, 6) + bytes(8) + b"\x81\0\0\x05\x08\0" + FOUR),
    "linux cooked 2": (276, struct.pack(">HHIHBB", 0x0800, 0, 3, 1, 0, 6) + bytes(8) + FOUR),
    "linux cooked 2, ipv6": (276, struct.pack(">HHIHBB", 0x86DD, 0, 3, 1, 0, 6) + bytes(8) + SIX),
    "ppp": (9, b"\xff\x03\0\x21" + FOUR),
    "ppp, compressed": (9, b"\x21" + FOUR),
    "ppp hdlc": (50, b"\xff\x03\0\x57" + SIX),
    "ppp, cisco hdlc": (9, b"\x0f\0\x08\0" + FOUR),
    "arcnet, rfc 1051": (129, b"\xbe\x50\0\0\xf0" + FOUR),
    "arcnet, rfc 1201": (129, b"\xbe\x50\0\0\xd4\0\x01\x66" + FOUR),
    "ip over infiniband": (242, bytes(40) + b"\x86\xdd\0\0" + SIX),
    "cisco hdlc": (104, b"\x0f\0\x08\0" + FOUR),
    "frame relay": (107, b"\x18\x41\x03\xcc" + FOUR),
    "frame relay, snap": (107, b"\x18\x41\x03\0\x80\0\0\0\x08\0" + FOUR),
    "802.11": (105, wlan(SNAP + FOUR, control=0x0208)),
    "802.11 qos": (105, wlan(SNAP + FOUR, control=0x0288, quality=b"\0\0")),
    "802.11 four addresses": (105, wlan(SNAP + FOUR, control=0x0308, extra=bytes(6))),
    "radiotap": (127, RADIOTAP + wlan(SNAP + FOUR, control=0x0208)),
    "radiotap, padded header": (127, RADIOTAP_PADDED + wlan(b"\0\0" + SNAP + FOUR, control=0x0288, quality=b"\0\0")),
    "radiotap, two presence words": (127, RADIOTAP_TWO_WORDS + wlan(SNAP + FOUR, control=0x0208)),
    "ppi": (192, struct.pack("<BBHI", 0, 0, 8, 1) + ETHERNET),
    "pktap": (258, pktap(ETHERNET, 1)),
    "nflog": (
        239,
        struct.pack(">BBH", 2, 0, 0) + struct.pack("<HHI", 8, 5, 1) + struct.pack("<HH", 4 + len(FOUR), 9) + FOUR,
    ),
    "ipv4 options": (
        1,
        ethernet(ipv4(SEGMENT, source="192.0.2.1", destination="198.51.100.2", ttl=61, options=b"\x94\4\0\0")),
    ),
    "ipv4 total length 0": (1, ethernet(FOUR[:2] + b"\0\0" + FOUR[4:])),
    "ipv6 hop-by-hop": (
        1,
        ethernet(ipv6(extension(6) + SEGMENT, source="2001:db8::a", destination="2001:db8::b", next_header=0)),
    ),
    "ipv6 routing and options": (
        1,
        ethernet(
            ipv6(
                extension(60) + extension(6, 1) + SEGMENT,
                source="2001:db8::a",
                destination="2001:db8::b",
                next_header=0,
            )
        ),
    ),
    "ipv6 authentication": (
        1,
        ethernet(
            ipv6(bytes((6, 4)) + bytes(22) + SEGMENT, source="2001:db8::a", destination="2001:db8::b", next_header=51)
        ),
    ),
    "ipv6 atomic fragment": (
        1,
        ethernet(
            ipv6(
                bytes((6, 0, 0, 0, 0, 0, 0, 9)) + SEGMENT,
                source="2001:db8::a",
                destination="2001:db8::b",
                next_header=44,
            )
        ),
    ),
    "ip in ip": (1, outer_ip(4, FOUR)),
    "6in4": (1, outer_ip(41, SIX)),
    "4in6": (1, ethernet(ipv6(FOUR, next_header=4))),
    "gre": (1, outer_ip(47, b"\0\0\x08\0" + FOUR)),
    "gre, key and sequence": (1, outer_ip(47, b"\x30\0\x08\0" + bytes(8) + FOUR)),
    "gre, ethernet": (1, outer_ip(47, b"\0\0\x65\x58" + ETHERNET)),
    "gre, eoip": (1, outer_ip(47, b"\x20\x01\x64\0" + struct.pack(">H", len(ETHERNET)) + b"\x07\0" + ETHERNET)),
    "gre, erspan 2": (1, outer_ip(47, b"\x10\0\x88\xbe" + bytes(4) + b"\x10\0" + bytes(6) + ETHERNET)),
    "pptp": (1, outer_ip(47, struct.pack(">HHHHI", 0x3001, 0x880B, len(FOUR) + 4, 1, 1) + b"\xff\x03\0\x21" + FOUR)),
    "etherip": (1, outer_ip(97, b"\x30\0" + ETHERNET)),
    "vxlan": (1, outer_udp(4789, b"\x08\0\0\0\0\0\x05\0" + ETHERNET)),
    "vxlan, answering": (1, outer_udp(50000, b"\x08\0\0\0\0\0\x05\0" + ETHERNET, source_port=4789)),
    "geneve, answering": (1, outer_udp(50000, b"\0\0\x65\x58\0\0\x05\0" + ETHERNET, source_port=6081)),
    "vxlan-gpe": (1, outer_udp(4790, b"\x0c\0\0\x01\0\0\x05\0" + FOUR)),
    "geneve": (1, outer_udp(6081, b"\0\0\x65\x58\0\0\x05\0" + ETHERNET)),
    "geneve, options": (1, outer_udp(6081, b"\x01\0\x65\x58\0\0\x05\0" + b"\xff\xff\x01\0" + ETHERNET)),
    "teredo": (1, outer_udp(3544, SIX)),
    "teredo, origin": (1, outer_udp(3544, bytes(8) + SIX)),
    "gtp": (1, outer_udp(2152, struct.pack(">BBHI", 0x30, 0xFF, len(FOUR), 1) + FOUR)),
    "gtp, extension": (
        1,
        outer_udp(2152, struct.pack(">BBHIHBB", 0x34, 0xFF, len(FOUR) + 8, 1, 0, 0, 0x85) + b"\x01\0\0\0" + FOUR),
    ),
    "l2tp": (1, outer_udp(1701, b"\x40\x02" + struct.pack(">HHH", len(FOUR) + 12, 1, 1) + b"\xff\x03\0\x21" + FOUR)),
    "nsh": (1, ethernet(struct.pack(">HBBI", 0x0FC6, 1, 1, 0) + bytes(16) + FOUR, ethertype=0x894F)),
}
