"""Every encapsulation that netdiag takes off: what it puts around an IP packet, and the same TCP segment in each of them."""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.support.packets import ACK, PSH, checksum, ethernet, ipv4, ipv6, tcp, udp

PAYLOAD = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
SEQ, SOURCE_PORT, DESTINATION_PORT = 0x01020304, 40001, 8080

SEGMENT = tcp(PAYLOAD, source_port=SOURCE_PORT, destination_port=DESTINATION_PORT, seq=SEQ, ack=7, flags=ACK | PSH)
FOUR = ipv4(SEGMENT, source="192.0.2.1", destination="198.51.100.2", ttl=61, identification=77)
SIX = ipv6(SEGMENT, source="2001:db8::a", destination="2001:db8::b", hop_limit=61)
SNAP = b"\xaa\xaa\x03\0\0\0\x08\0"
RADIOTAP = struct.pack("<BBHI", 0, 0, 8, 0)
RADIOTAP_PADDED = struct.pack("<BBHIQB", 0, 0, 17, 3, 1, 0x20)
RADIOTAP_TWO_WORDS = struct.pack("<BBHII", 0, 0, 12, 0x80000000, 0)
COOKED = struct.pack(">HHH", 0, 1, 6) + bytes(8)
COOKED_2 = struct.pack(">HIHBB", 0, 3, 1, 0, 6) + bytes(8)


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


def extended(packet: bytes, first: int, headers: bytes) -> bytes:
    """An IPv6 packet with extension headers, the first of which is of type ``first``."""
    body = headers + packet[40:]
    return packet[:4] + struct.pack(">HB", len(body), first) + packet[7:40] + body


def with_options(packet: bytes, options: bytes) -> bytes:
    """An IPv4 packet with options in its header."""
    head = bytes((0x45 + len(options) // 4, 0)) + struct.pack(">H", len(packet) + len(options)) + packet[4:10]
    whole = head + bytes(2) + packet[12:20] + options
    return head + struct.pack(">H", checksum(whole)) + whole[12:] + packet[20:]


def tagged(packet: bytes, tags: bytes) -> bytes:
    """An Ethernet frame with other octets where its type would stand."""
    return ethernet(packet)[:12] + tags + packet


def pppoe(packet: bytes, protocol: int) -> bytes:
    """A PPPoE session frame."""
    return ethernet(struct.pack(">BBHHH", 0x11, 0, 1, len(packet) + 2, protocol) + packet, ethertype=0x8864)


CAPWAP_NATIVE = b"\0\x20\3\x20" + bytes(4) + b"\4" + bytes(7)
"""RFC 5415 section 4.3: 16 octets, four of them of the radio, an 802.11 frame behind."""


def wlan(payload: bytes, *, control: int, quality: bytes = b"", extra: bytes = b"") -> bytes:
    """An 802.11 data frame."""
    return struct.pack("<HH", control, 0) + bytes(18) + b"\0\0" + extra + quality + payload


def subframe(payload: bytes) -> bytes:
    """The only one of an A-MSDU."""
    return bytes(12) + struct.pack(">H", len(payload)) + payload


def pktap(inner: bytes, link_type: int) -> bytes:
    """Apple's header."""
    return struct.pack("<III", 108, 1, link_type) + bytes(96) + inner


def nflog(packet: bytes) -> bytes:
    """Netfilter's log: a prefix, then the packet."""
    fields = struct.pack("<HHI", 8, 5, 1) + struct.pack("<HH", 4 + len(packet), 9)
    return struct.pack(">BBH", 2, 0, 0) + fields + packet


def pptp(packet: bytes) -> bytes:
    """GRE version 1 with PPP inside (RFC 2637 section 4.1)."""
    return outer_ip(47, struct.pack(">HHHHI", 0x3001, 0x880B, len(packet) + 4, 1, 1) + b"\xff\x03\0\x21" + packet)


def eoip(packet: bytes) -> bytes:
    """MikroTik's Ethernet over IP."""
    inner = ethernet(packet)
    return outer_ip(47, b"\x20\x01\x64\0" + struct.pack(">H", len(inner)) + b"\x07\0" + inner)


def gtp(packet: bytes) -> bytes:
    """GTP-U."""
    return outer_udp(2152, struct.pack(">BBHI", 0x30, 0xFF, len(packet), 1) + packet)


def gtp_extended(packet: bytes) -> bytes:
    """GTP-U with an extension header."""
    head = struct.pack(">BBHIHBB", 0x34, 0xFF, len(packet) + 8, 1, 0, 0, 0x85)
    return outer_udp(2152, head + b"\x01\0\0\0" + packet)


def l2tp(packet: bytes) -> bytes:
    """L2TP version 2 with PPP inside."""
    return outer_udp(1701, b"\x40\x02" + struct.pack(">HHH", len(packet) + 12, 1, 1) + b"\xff\x03\0\x21" + packet)


Wrap = Callable[[bytes], bytes]

AROUND_IPV4: dict[str, tuple[int, Wrap]] = {
    "ethernet": (1, ethernet),
    "ethernet, trailer": (1, lambda p: ethernet(p) + bytes(12)),
    "vlan": (1, lambda p: ethernet(p, vlans=[5])),
    "qinq": (1, lambda p: tagged(p, b"\x88\xa8\x00\x05\x81\x00\x00\x06\x08\x00")),
    "mpls": (1, lambda p: ethernet(b"\0\x01\0\x40" + b"\0\x02\x01\x40" + p, ethertype=0x8847)),
    "mpls pseudowire with control word": (
        1,
        lambda p: ethernet(b"\0\x01\x01\x40" + bytes(4) + ethernet(p), ethertype=0x8847),
    ),
    "pppoe": (1, lambda p: pppoe(p, 0x21)),
    "802.3 snap": (1, lambda p: tagged(p, struct.pack(">H", 8 + len(p)) + SNAP)),
    "802.1ah": (1, lambda p: ethernet(bytes(4) + ethernet(p), ethertype=0x88E7)),
    "vn-tag": (1, lambda p: ethernet(bytes(4) + b"\x08\0" + p, ethertype=0x8926)),
    "null, little-endian": (0, lambda p: struct.pack("<I", 2) + p),
    "null, big-endian": (0, lambda p: struct.pack(">I", 2) + p),
    "loop": (108, lambda p: struct.pack(">I", 2) + p),
    "raw 12": (12, bytes),
    "raw 101": (101, bytes),
    "raw 228": (228, bytes),
    "linux cooked": (113, lambda p: COOKED + b"\x08\0" + p),
    "linux cooked, vlan": (113, lambda p: COOKED + b"\x81\0\0\x05\x08\0" + p),
    "linux cooked 2": (276, lambda p: b"\x08\0" + COOKED_2 + p),
    "ppp": (9, lambda p: b"\xff\x03\0\x21" + p),
    "ppp, compressed": (9, lambda p: b"\x21" + p),
    "ppp, cisco hdlc": (9, lambda p: b"\x0f\0\x08\0" + p),
    "arcnet, rfc 1051": (129, lambda p: b"\xbe\x50\0\0\xf0" + p),
    "arcnet, rfc 1201": (129, lambda p: b"\xbe\x50\0\0\xd4\0\x01\x66" + p),
    "cisco hdlc": (104, lambda p: b"\x0f\0\x08\0" + p),
    "frame relay": (107, lambda p: b"\x18\x41\x03\xcc" + p),
    "frame relay, snap": (107, lambda p: b"\x18\x41\x03\0\x80\0\0\0\x08\0" + p),
    "802.11": (105, lambda p: wlan(SNAP + p, control=0x0208)),
    "802.11 qos": (105, lambda p: wlan(SNAP + p, control=0x0288, quality=b"\0\0")),
    "802.11 four addresses": (105, lambda p: wlan(SNAP + p, control=0x0308, extra=bytes(6))),
    "radiotap": (127, lambda p: RADIOTAP + wlan(SNAP + p, control=0x0208)),
    "radiotap, padded header": (
        127,
        lambda p: RADIOTAP_PADDED + wlan(b"\0\0" + SNAP + p, control=0x0288, quality=b"\0\0"),
    ),
    "radiotap, two presence words": (127, lambda p: RADIOTAP_TWO_WORDS + wlan(SNAP + p, control=0x0208)),
    "ppi": (192, lambda p: struct.pack("<BBHI", 0, 0, 8, 1) + ethernet(p)),
    "pktap": (258, lambda p: pktap(ethernet(p), 1)),
    "nflog": (239, nflog),
    "ipv4 options": (1, lambda p: ethernet(with_options(p, b"\x94\4\0\0"))),
    "ipv4 total length 0": (1, lambda p: ethernet(p[:2] + b"\0\0" + p[4:])),
    "ip in ip": (1, lambda p: outer_ip(4, p)),
    "4in6": (1, lambda p: ethernet(ipv6(p, next_header=4))),
    "gre": (1, lambda p: outer_ip(47, b"\0\0\x08\0" + p)),
    "gre, key and sequence": (1, lambda p: outer_ip(47, b"\x30\0\x08\0" + bytes(8) + p)),
    "gre, ethernet": (1, lambda p: outer_ip(47, b"\0\0\x65\x58" + ethernet(p))),
    "gre, 802.11": (1, lambda p: outer_ip(47, b"\0\0\x82\0" + wlan(SNAP + p, control=0x0208))),
    "gre, 802.11 aggregated": (
        1,
        lambda p: outer_ip(47, b"\0\0\x82\x40" + wlan(subframe(SNAP + p), control=0x0288, quality=b"\x80\0")),
    ),
    "gre, eoip": (1, eoip),
    "gre, erspan 2": (1, lambda p: outer_ip(47, b"\x10\0\x88\xbe" + bytes(4) + b"\x10\0" + bytes(6) + ethernet(p))),
    "pptp": (1, pptp),
    "etherip": (1, lambda p: outer_ip(97, b"\x30\0" + ethernet(p))),
    "vxlan": (1, lambda p: outer_udp(4789, b"\x08\0\0\0\0\0\x05\0" + ethernet(p))),
    "vxlan, reserved bits": (1, lambda p: outer_udp(4789, b"\xff\1\xd1\xf2\0\0\x0b\7" + ethernet(p))),
    "vxlan, answering": (1, lambda p: outer_udp(50000, b"\x08\0\0\0\0\0\x05\0" + ethernet(p), source_port=4789)),
    "geneve, answering": (1, lambda p: outer_udp(50000, b"\0\0\x65\x58\0\0\x05\0" + ethernet(p), source_port=6081)),
    "vxlan-gpe": (1, lambda p: outer_udp(4790, b"\x0c\0\0\x01\0\0\x05\0" + p)),
    "geneve": (1, lambda p: outer_udp(6081, b"\0\0\x65\x58\0\0\x05\0" + ethernet(p))),
    "geneve, options": (1, lambda p: outer_udp(6081, b"\x01\0\x65\x58\0\0\x05\0" + b"\xff\xff\x01\0" + ethernet(p))),
    "gtp": (1, gtp),
    "gtp, extension": (1, gtp_extended),
    "l2tp": (1, l2tp),
    "juniper ethernet": (178, lambda p: b"MGC\0" + ethernet(p)),
    "juniper ethernet, extensions": (178, lambda p: b"MGC\x80\0\6" + b"\3\1\1\6\1\x0e" + ethernet(p)),
    "capwap, 802.11": (
        1,
        lambda p: outer_udp(5247, CAPWAP_NATIVE + wlan(SNAP + p, control=0x0802), source_port=41264),
    ),
    "capwap, ethernet": (1, lambda p: outer_udp(50000, b"\0\x10\2\0\0\0\0\0" + ethernet(p), source_port=5247)),
    "nsh": (1, lambda p: ethernet(struct.pack(">HBBI", 0x0FC6, 1, 1, 0) + bytes(16) + p, ethertype=0x894F)),
}
"""LINKTYPE_ and what makes a frame of an IPv4 packet."""

AROUND_IPV6: dict[str, tuple[int, Wrap]] = {
    "ethernet, ipv6": (1, ethernet),
    "vlan, ipv6": (1, lambda p: ethernet(p, vlans=[5])),
    "pppoe, ipv6": (1, lambda p: pppoe(p, 0x57)),
    "null, darwin ipv6": (0, lambda p: struct.pack("<I", 30) + p),
    "loop, openbsd ipv6": (108, lambda p: struct.pack(">I", 24) + p),
    "raw 101, ipv6": (101, bytes),
    "raw 229": (229, bytes),
    "linux cooked 2, ipv6": (276, lambda p: b"\x86\xdd" + COOKED_2 + p),
    "ppp hdlc": (50, lambda p: b"\xff\x03\0\x57" + p),
    "ip over infiniband": (242, lambda p: bytes(40) + b"\x86\xdd\0\0" + p),
    "ipv6 hop-by-hop": (1, lambda p: ethernet(extended(p, 0, extension(6)))),
    "ipv6 routing and options": (1, lambda p: ethernet(extended(p, 0, extension(60) + extension(6, 1)))),
    "ipv6 authentication": (1, lambda p: ethernet(extended(p, 51, bytes((6, 4)) + bytes(22)))),
    "ipv6 atomic fragment": (1, lambda p: ethernet(extended(p, 44, bytes((6, 0, 0, 0, 0, 0, 0, 9))))),
    "6in4": (1, lambda p: outer_ip(41, p)),
    "teredo": (1, lambda p: outer_udp(3544, p)),
    "ayiya": (1, lambda p: outer_udp(5072, b"\x41\x52\x11\x29" + bytes(4 + 16 + 20) + p, source_port=50001)),
    "teredo, origin": (1, lambda p: outer_udp(3544, bytes(8) + p)),
}
"""LINKTYPE_ and what makes a frame of an IPv6 packet."""

ENCAPSULATIONS: dict[str, tuple[int, bytes]] = {
    name: (link_type, wrap(packet))
    for around, packet in ((AROUND_IPV4, FOUR), (AROUND_IPV6, SIX))
    for name, (link_type, wrap) in around.items()
}
"""The same segment in each: LINKTYPE_ and frame."""
