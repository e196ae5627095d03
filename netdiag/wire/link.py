"""Link layers, one vectorised function each: from the first octet of a frame to the network layer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from netdiag.wire.codes import ETHERNET, ETHERTYPE, IPV4, IPV6, LINK_TYPE, LLC, MPLS, NLPID, PPP, Inner
from netdiag.wire.cursor import UNBOUND, Cursor, Layer, le16, le32, u8, u16, u32
from netdiag.wire.octets import Octets
from netdiag.wire.tables import Int64

LEAST_ETHERTYPE = 1536
"""Smaller values are the length of an 802.3 frame (IEEE 802.3 section 3.2.6)."""
IPV4_FAMILIES = (2,)
IPV6_FAMILIES = (10, 23, 24, 28, 30)
"""AF_INET6 of Linux, Windows, NetBSD and OpenBSD, FreeBSD, and Darwin."""


def by_type_field(cursor: Cursor, kind: Int64, advance: int) -> Cursor:
    """Behind a header that ends in an EtherType, or in the length of an 802.3 frame."""
    code = np.where(kind >= LEAST_ETHERTYPE, ETHERTYPE | kind, int(Inner.LLC_HEADER))
    if (kind >= LEAST_ETHERTYPE).all():
        return cursor.step(code, advance)
    by_length = np.where(kind >= LEAST_ETHERTYPE, UNBOUND, cursor.at + advance + kind)
    inside = cursor.step(code, advance, wire_end=np.minimum(cursor.wire_end, by_length))
    return replace(inside, bound=np.minimum(cursor.bound, by_length))


def ethernet(octets: Octets, cursor: Cursor) -> Cursor:
    """IEEE 802.3: destination, source, type or length."""
    return by_type_field(cursor, u16(octets, cursor, 12), 14)


def vlan(octets: Octets, cursor: Cursor) -> Cursor:
    """IEEE 802.1Q tag, of any of its EtherTypes."""
    return by_type_field(cursor, u16(octets, cursor, 2), 4)


def provider_backbone(octets: Octets, cursor: Cursor) -> Cursor:
    """IEEE 802.1ah: a service tag, then a whole Ethernet frame."""
    return cursor.step(ETHERNET, 4)


def bridge_port_extension(octets: Octets, cursor: Cursor) -> Cursor:
    """IEEE 802.1BR E-tag."""
    return by_type_field(cursor, u16(octets, cursor, 6), 8)


def vn_tag(octets: Octets, cursor: Cursor) -> Cursor:
    """Cisco VN-Tag."""
    return by_type_field(cursor, u16(octets, cursor, 4), 6)


def cisco_metadata(octets: Octets, cursor: Cursor) -> Cursor:
    """Cisco MetaData (security group tag)."""
    return by_type_field(cursor, u16(octets, cursor, 6), 8)


def llc(octets: Octets, cursor: Cursor) -> Cursor:
    """IEEE 802.2: SNAP with an EtherType, IP by its own SAP, or something else."""
    dsap, ssap, control = u8(octets, cursor, 0), u8(octets, cursor, 1), u8(octets, cursor, 2)
    organisation = (u16(octets, cursor, 3) << 8) | u8(octets, cursor, 5)
    snap = (dsap == 0xAA) & (ssap == 0xAA) & (control == 3)
    typed = snap & np.isin(organisation, (0x000000, 0x0000F8, 0x00000C))
    kind = u16(octets, cursor, 6)
    bridged = snap & (organisation == 0x0080C2) & np.isin(kind, (1, 7))
    iso = (dsap == 0xFE) & (ssap == 0xFE) & (control == 3)
    code = np.select(
        [typed, bridged, (dsap == 0x06) & (control == 3), iso, (dsap == 0xFF) & (ssap == 0xFF)],
        [ETHERTYPE | kind, ETHERNET, IPV4, NLPID | u8(octets, cursor, 3), int(Inner.RAW_802_3)],
        LLC | dsap,
    )
    return cursor.step(code, np.select([typed, bridged, iso], [8, 10, 4], 3))


def mpls(octets: Octets, cursor: Cursor) -> Cursor:
    """RFC 3032: one label; what follows the last one has no type of its own."""
    bottom = (u32(octets, cursor, 0) & 0x100) != 0
    return cursor.step(np.where(bottom, int(Inner.MPLS_PAYLOAD), MPLS), 4)


def mpls_payload(octets: Octets, cursor: Cursor) -> Cursor:
    """IP by its version; a pseudowire control word begins with 0 (RFC 4385); else Ethernet without one."""
    version = u8(octets, cursor, 0) >> 4
    code = np.select([version == 4, version == 6], [IPV4, IPV6], ETHERNET)
    return cursor.step(code, np.where(version == 0, 4, 0))


def pppoe_session(octets: Octets, cursor: Cursor) -> Cursor:
    """RFC 2516 section 4: session data."""
    length = u16(octets, cursor, 4)
    end = np.minimum(cursor.wire_end, cursor.at + 6 + length)
    return cursor.step(int(Inner.PPP_FRAME), 6, wire_end=end, binding=True)


def ppp(octets: Octets, cursor: Cursor) -> Cursor:
    """RFC 1661 and 1662: address and control may be there or not, the protocol field may be one octet. Some capture Cisco HDLC so."""
    address = u16(octets, cursor, 0)
    framed = address == 0xFF03
    here = cursor.step(cursor.code, np.where(framed, 2, 0))
    short = (u8(octets, here, 0) & 1) == 1
    protocol = np.where(short, u8(octets, here, 0), u16(octets, here, 0))
    cisco = np.isin(address, (0x0F00, 0x8F00)) & (u16(octets, cursor, 2) >= LEAST_ETHERTYPE)
    code = np.where(cisco, ETHERTYPE | u16(octets, cursor, 2), PPP | protocol)
    return here.step(code, np.select([cisco, short], [4, 1], 2))


def ppp_with_direction(octets: Octets, cursor: Cursor) -> Cursor:
    """One octet says who sent it."""
    return cursor.step(int(Inner.PPP_FRAME), 1)


def cisco_hdlc(octets: Octets, cursor: Cursor) -> Cursor:
    """Address, control, EtherType."""
    return cursor.step(ETHERTYPE | u16(octets, cursor, 2), 4)


def cisco_hdlc_with_direction(octets: Octets, cursor: Cursor) -> Cursor:
    """One octet says who sent it."""
    return cursor.step(LINK_TYPE | 104, 1)


def frame_relay(octets: Octets, cursor: Cursor) -> Cursor:
    """RFC 2427: an address of two to four octets, then control and NLPID; Cisco puts an EtherType instead."""
    address = np.select([(u8(octets, cursor, k) & 1) == 1 for k in (1, 2)], [2, 3], 4)
    here = cursor.step(cursor.code, address)
    control, nlpid = u8(octets, here, 0), u8(octets, here, 1)
    padded = (control == 3) & (nlpid == 0)
    nlpid = np.where(padded, u8(octets, here, 2), nlpid)
    by_nlpid = control == 3
    code = np.where(by_nlpid, NLPID | nlpid, ETHERTYPE | u16(octets, here, 0))
    return here.step(code, np.where(padded, 3, 2))


def frame_relay_with_direction(octets: Octets, cursor: Cursor) -> Cursor:
    """One octet says who sent it."""
    return cursor.step(LINK_TYPE | 107, 1)


def nlpid_snap(octets: Octets, cursor: Cursor) -> Cursor:
    """RFC 2427 section 4.1: OUI and protocol."""
    organisation = (u16(octets, cursor, 0) << 8) | u8(octets, cursor, 2)
    kind = u16(octets, cursor, 3)
    code = np.where(organisation == 0x0080C2, ETHERNET, ETHERTYPE | kind)
    return cursor.step(code, 5)


def loopback(octets: Octets, cursor: Cursor) -> Cursor:
    """BSD NULL and LOOP: the address family in the byte order of the capturing host, or in network order."""
    family = le32(octets, cursor, 0)
    family = np.where(family > 0xFFFF, u32(octets, cursor, 0), family)
    code = np.select(
        [np.isin(family, IPV4_FAMILIES), np.isin(family, IPV6_FAMILIES), family >= LEAST_ETHERTYPE],
        [IPV4, IPV6, ETHERTYPE | (family & 0xFFFF)],
        int(Inner.IP_VERSION),
    )
    return cursor.step(code, 4)


def raw_ip(octets: Octets, cursor: Cursor) -> Cursor:
    """No link layer: the version says what it is."""
    version = u8(octets, cursor, 0) >> 4
    return cursor.step(np.select([version == 4, version == 6], [IPV4, IPV6], int(Inner.IP_VERSION)), 0)


def raw_ipv4(octets: Octets, cursor: Cursor) -> Cursor:
    """LINKTYPE_IPV4."""
    return cursor.step(IPV4, 0)


def raw_ipv6(octets: Octets, cursor: Cursor) -> Cursor:
    """LINKTYPE_IPV6."""
    return cursor.step(IPV6, 0)


def _by_cooked_type(cursor: Cursor, kind: Int64, hardware: Int64, advance: int) -> Cursor:
    """Linux cooked protocols: an EtherType, or one of the kernel's own small numbers (1: 802.3 frame, 4: 802.2 LLC)."""
    netlink = hardware == 824
    code = np.select(
        [netlink, kind >= LEAST_ETHERTYPE, kind == 4, kind == 1],
        [LINK_TYPE | 253, ETHERTYPE | kind, int(Inner.LLC_HEADER), int(Inner.RAW_802_3)],
        ETHERTYPE | kind,
    )
    return cursor.step(code, advance)


def linux_cooked(octets: Octets, cursor: Cursor) -> Cursor:
    """LINKTYPE_LINUX_SLL."""
    return _by_cooked_type(cursor, u16(octets, cursor, 14), u16(octets, cursor, 2), 16)


def linux_cooked_2(octets: Octets, cursor: Cursor) -> Cursor:
    """LINKTYPE_LINUX_SLL2."""
    return _by_cooked_type(cursor, u16(octets, cursor, 0), u16(octets, cursor, 8), 20)


def fddi(octets: Octets, cursor: Cursor) -> Cursor:
    """Frame control, two addresses, LLC."""
    asynchronous_llc = (u8(octets, cursor, 0) & 0xF0) == 0x50
    return cursor.step(np.where(asynchronous_llc, int(Inner.LLC_HEADER), cursor.code), 13)


def token_ring(octets: Octets, cursor: Cursor) -> Cursor:
    """IEEE 802.5: the source address's first bit announces routing information."""
    llc_frame = (u8(octets, cursor, 1) & 0xC0) == 0x40
    routed = (u8(octets, cursor, 8) & 0x80) != 0
    advance = 14 + np.where(routed, u8(octets, cursor, 14) & 0x1F, 0)
    return cursor.step(np.where(llc_frame, int(Inner.LLC_HEADER), cursor.code), advance)


def bsd_encapsulated(octets: Octets, cursor: Cursor) -> Cursor:
    """OpenBSD ENC: family, SPI, flags, then IP."""
    return cursor.step(int(Inner.RAW_IP), 12)


def packet_filter_log(octets: Octets, cursor: Cursor) -> Cursor:
    """PFLOG: its first octet is its length, padded to 32 bits."""
    return cursor.step(int(Inner.RAW_IP), (u8(octets, cursor, 0) + 3) & -4)


def packet_tap(octets: Octets, cursor: Cursor) -> Cursor:
    """Apple PKTAP: little-endian length, and the link type of what follows."""
    length = le32(octets, cursor, 0)
    inner = le32(octets, cursor, 8)
    plausible = (length >= 12) & (length < 65536) & (inner < 65536) & (inner != 258) & (inner != 149)
    return cursor.step(np.where(plausible, LINK_TYPE | inner, int(Inner.BAD_HEADER)), np.where(plausible, length, 12))


def net_analyzer(octets: Octets, cursor: Cursor) -> Cursor:
    """Hilscher netANALYZER: four octets before an Ethernet frame."""
    return cursor.step(ETHERNET, 4)


def juniper_ethernet(octets: Octets, cursor: Cursor) -> Cursor:
    """Junos: a magic number, flags (0x80: extensions with their length follow; 0x02: no link layer), then an Ethernet frame."""
    head = u32(octets, cursor, 0)
    extensions = np.where((head & 0x80) != 0, 2 + u16(octets, cursor, 4), 0)
    good = (head >> 8 == 0x4D4743) & ((head & 2) == 0)
    return cursor.step(np.where(good, ETHERNET, int(Inner.BAD_HEADER)), 4 + extensions)


def netfilter_log(octets: Octets, cursor: Cursor) -> Cursor:
    """NFLOG: attributes (length, type; little-endian as written on nearly all hosts) of which the ninth is the packet."""
    family = u8(octets, cursor, 0)
    here = cursor.at + 4
    payload, reach = here * 0, cursor.wire_end.copy()
    for _ in range(32):
        at_attribute = cursor.step(0, here - cursor.at)
        length, kind = le16(octets, at_attribute, 0), le16(octets, at_attribute, 2) & 0x7FFF
        found = (kind == 9) & (payload == 0) & (length >= 4)
        payload = np.where(found, here + 4, payload)
        reach = np.where(found, here + length, reach)
        here = np.minimum(here + np.maximum((length + 3) & -4, 4), cursor.end)
        if ((payload != 0) | (here >= cursor.end)).all():
            break
    code = np.select(
        [(payload == 0), family == 2, family == 10], [int(Inner.BAD_HEADER), IPV4, IPV6], int(Inner.RAW_IP)
    )
    return cursor.step(
        code, np.where(payload == 0, 4, payload - cursor.at), wire_end=np.minimum(reach, cursor.wire_end)
    )


def ip_over_infiniband(octets: Octets, cursor: Cursor) -> Cursor:
    """Forty octets of route, then RFC 4391 section 6: type and reserved."""
    return cursor.step(ETHERTYPE | u16(octets, cursor, 40), 44)


def arcnet_of_linux(octets: Octets, cursor: Cursor) -> Cursor:
    """Source, destination, offset, then RFC 1051: protocol; or RFC 1201: protocol, split flag and sequence. Split packets stay as they are."""
    kind, whole = u8(octets, cursor, 4), u8(octets, cursor, 5) == 0
    code = np.select(
        [kind == 240, (kind == 212) & whole, (kind == 196) & whole, np.isin(kind, (213, 241))],
        [IPV4, IPV4, IPV6, ETHERTYPE | 0x0806],
        int(Inner.BAD_HEADER),
    )
    return cursor.step(code, np.where(kind >= 240, 5, 8))


LINK_LAYERS: dict[int, Layer] = {
    LINK_TYPE | 0: Layer("null", 4, loopback),
    LINK_TYPE | 1: Layer("ethernet", 14, ethernet),
    LINK_TYPE | 6: Layer("token ring", 14, token_ring),
    LINK_TYPE | 9: Layer("ppp", 2, ppp),
    LINK_TYPE | 10: Layer("fddi", 13, fddi),
    LINK_TYPE | 12: Layer("raw ip", 1, raw_ip),
    LINK_TYPE | 14: Layer("raw ip", 1, raw_ip),
    LINK_TYPE | 50: Layer("ppp", 2, ppp),
    LINK_TYPE | 51: Layer("pppoe", 6, pppoe_session),
    LINK_TYPE | 100: Layer("llc", 3, llc),
    LINK_TYPE | 101: Layer("raw ip", 1, raw_ip),
    LINK_TYPE | 104: Layer("cisco hdlc", 4, cisco_hdlc),
    LINK_TYPE | 107: Layer("frame relay", 4, frame_relay),
    LINK_TYPE | 108: Layer("loop", 4, loopback),
    LINK_TYPE | 109: Layer("enc", 12, bsd_encapsulated),
    LINK_TYPE | 113: Layer("linux cooked", 16, linux_cooked),
    LINK_TYPE | 117: Layer("pflog", 4, packet_filter_log),
    LINK_TYPE | 129: Layer("arcnet", 8, arcnet_of_linux),
    LINK_TYPE | 149: Layer("pktap", 12, packet_tap),
    LINK_TYPE | 166: Layer("ppp", 3, ppp_with_direction),
    LINK_TYPE | 178: Layer("juniper ethernet", 4, juniper_ethernet),
    LINK_TYPE | 204: Layer("ppp", 3, ppp_with_direction),
    LINK_TYPE | 205: Layer("cisco hdlc", 5, cisco_hdlc_with_direction),
    LINK_TYPE | 206: Layer("frame relay", 5, frame_relay_with_direction),
    LINK_TYPE | 219: Layer("mpls", 4, mpls),
    LINK_TYPE | 228: Layer("raw ip", 1, raw_ipv4),
    LINK_TYPE | 229: Layer("raw ip", 1, raw_ipv6),
    LINK_TYPE | 239: Layer("nflog", 8, netfilter_log),
    LINK_TYPE | 240: Layer("netanalyzer", 18, net_analyzer),
    LINK_TYPE | 242: Layer("ip over infiniband", 44, ip_over_infiniband),
    LINK_TYPE | 258: Layer("pktap", 12, packet_tap),
    LINK_TYPE | 276: Layer("linux cooked 2", 20, linux_cooked_2),
    ETHERTYPE | 0x8100: Layer("vlan", 4, vlan),
    ETHERTYPE | 0x88A8: Layer("vlan", 4, vlan),
    ETHERTYPE | 0x9100: Layer("vlan", 4, vlan),
    ETHERTYPE | 0x9200: Layer("vlan", 4, vlan),
    ETHERTYPE | 0x9300: Layer("vlan", 4, vlan),
    ETHERTYPE | 0x8847: Layer("mpls", 4, mpls),
    ETHERTYPE | 0x8848: Layer("mpls", 4, mpls),
    ETHERTYPE | 0x8864: Layer("pppoe", 6, pppoe_session),
    ETHERTYPE | 0x880B: Layer("ppp", 2, ppp),
    ETHERTYPE | 0x6558: Layer("ethernet", 14, ethernet),
    ETHERTYPE | 0x8870: Layer("llc", 3, llc),
    ETHERTYPE | 0x88E7: Layer("802.1ah", 4, provider_backbone),
    ETHERTYPE | 0x893F: Layer("802.1br", 8, bridge_port_extension),
    ETHERTYPE | 0x8926: Layer("vn-tag", 6, vn_tag),
    ETHERTYPE | 0x8909: Layer("cisco metadata", 8, cisco_metadata),
    PPP | 0x0021: Layer("raw ip", 1, raw_ipv4),
    PPP | 0x0057: Layer("raw ip", 1, raw_ipv6),
    PPP | 0x0281: Layer("mpls", 4, mpls),
    PPP | 0x0283: Layer("mpls", 4, mpls),
    NLPID | 0x80: Layer("snap", 5, nlpid_snap),
    NLPID | 0xCC: Layer("raw ip", 1, raw_ipv4),
    NLPID | 0x8E: Layer("raw ip", 1, raw_ipv6),
    NLPID | 0xCF: Layer("ppp", 2, ppp),
    Inner.RAW_IP: Layer("raw ip", 1, raw_ip),
    Inner.LLC_HEADER: Layer("llc", 3, llc),
    Inner.PPP_FRAME: Layer("ppp", 2, ppp),
    Inner.MPLS_PAYLOAD: Layer("mpls payload", 1, mpls_payload),
}
