"""Packets inside packets: what is inside counts, as in Wireshark."""

from __future__ import annotations

import numpy as np

from netdiag.wire.codes import ETHERNET, ETHERTYPE, IP_PROTOCOL, IPV4, IPV6, MPLS, Inner
from netdiag.wire.cursor import Cursor, Layer, u8, u16, u32
from netdiag.wire.octets import BIG16, BIG32, OCTET, Octets
from netdiag.wire.tables import Bool, Int64

GRE_CHECKSUM, GRE_ROUTING, GRE_KEY, GRE_SEQUENCE, GRE_ACK = 0x8000, 0x4000, 0x2000, 0x1000, 0x0080
NEXT_PROTOCOL = {1: IPV4, 2: IPV6, 3: ETHERNET, 4: ETHERTYPE | 0x894F, 5: MPLS}
"""Of NSH (RFC 8300) and VXLAN-GPE."""


def gre(octets: Octets, cursor: Cursor) -> Cursor:
    """RFC 2784, 2890, and version 1 of RFC 2637 (PPTP), in which MikroTik's EoIP carries Ethernet behind length and tunnel number.

    Aruba's access points hand over frames of 802.11, each radio and cipher under a protocol type of its own (0x8200 to 0x83F0).
    """
    flags, kind = u16(octets, cursor, 0), u16(octets, cursor, 2)
    advance = 4 + sum(np.where((flags & bit) != 0, 4, 0) for bit in (GRE_KEY, GRE_SEQUENCE))
    advance = advance + np.where((flags & (GRE_CHECKSUM | GRE_ROUTING)) != 0, 4, 0)
    version_1 = (flags & 7) == 1
    advance = advance + np.where(version_1 & ((flags & GRE_ACK) != 0), 4, 0)
    redirect = (kind == 0x883E) & (octets.column(cursor.at + advance, OCTET) >> 4 != 4)
    sequenced = (flags & GRE_SEQUENCE) != 0
    code = np.select(
        [
            (flags & 7) > 1,
            (kind == 0x88BE) & sequenced,
            kind == 0x88BE,
            kind == 0x22EB,
            kind == 0x883E,
            kind == 0x6559,
            version_1 & (kind == 0x6400),
            (kind & 0xFE0F) == 0x8200,
        ],
        [
            int(Inner.BAD_HEADER),
            int(Inner.ERSPAN_2),
            ETHERNET,
            int(Inner.ERSPAN_3),
            IPV4,
            int(Inner.BAD_HEADER),
            ETHERNET,
            int(Inner.WLAN),
        ],
        ETHERTYPE | kind,
    )
    return cursor.step(code, advance + np.where(redirect, 4, 0))


def erspan_2(octets: Octets, cursor: Cursor) -> Cursor:
    """A mirrored Ethernet frame behind eight octets."""
    return cursor.step(ETHERNET, 8)


def erspan_3(octets: Octets, cursor: Cursor) -> Cursor:
    """Twelve octets, eight more with the O bit."""
    optional = (u8(octets, cursor, 11) & 1) != 0
    return cursor.step(ETHERNET, np.where(optional, 20, 12))


def ether_ip(octets: Octets, cursor: Cursor) -> Cursor:
    """RFC 3378."""
    return cursor.step(ETHERNET, 2)


def ip_in_ip(octets: Octets, cursor: Cursor) -> Cursor:
    """RFC 2003 and 4213: by the protocol number, whatever is inside must agree."""
    return cursor.step(int(Inner.RAW_IP), 0)


def _next_protocol(kind: Int64) -> Int64:
    return np.select([kind == k for k in NEXT_PROTOCOL], list(NEXT_PROTOCOL.values()), int(Inner.BAD_HEADER))


def network_service_header(octets: Octets, cursor: Cursor) -> Cursor:
    """RFC 8300: length in units of 4 octets."""
    words = u16(octets, cursor, 0) & 0x3F
    return cursor.step(_next_protocol(u8(octets, cursor, 3)), np.maximum(words * 4, 8))


def vxlan(octets: Octets, cursor: Cursor) -> Cursor:
    """RFC 7348."""
    return cursor.step(ETHERNET, 8)


def vxlan_gpe(octets: Octets, cursor: Cursor) -> Cursor:
    """draft-ietf-nvo3-vxlan-gpe: with a next protocol, if the P bit says so."""
    typed = (u8(octets, cursor, 0) & 4) != 0
    return cursor.step(np.where(typed, _next_protocol(u8(octets, cursor, 3)), ETHERNET), 8)


def geneve(octets: Octets, cursor: Cursor) -> Cursor:
    """RFC 8926: options in units of 4 octets."""
    return cursor.step(ETHERTYPE | u16(octets, cursor, 2), 8 + (u8(octets, cursor, 0) & 0x3F) * 4)


def teredo(octets: Octets, cursor: Cursor) -> Cursor:
    """RFC 4380 section 5.1.1: authentication and origin indication may stand before the IPv6 packet."""
    authenticated = u16(octets, cursor, 0) == 1
    length = 13 + u8(octets, cursor, 2) + u8(octets, cursor, 3)
    here = cursor.step(cursor.code, np.where(authenticated, length, 0))
    origin = u16(octets, here, 0) == 0
    return here.step(IPV6, np.where(origin, 8, 0))


def gtp_user(octets: Octets, cursor: Cursor) -> Cursor:
    """3GPP TS 29.281 section 5: optional fields are all there when one of three flags is set; then extension headers."""
    flags = u8(octets, cursor, 0)
    optional = (flags & 7) != 0
    here = cursor.at + 8 + np.where(optional, 4, 0)
    kind = np.where((flags & 4) != 0, u8(octets, cursor, 11), 0)
    for _ in range(8):
        if not (kind != 0).any():
            break
        length = octets.column(here, OCTET) * 4
        kind_after = octets.column(here + np.maximum(length, 1) - 1, OCTET)
        here = np.where(kind != 0, here + length, here)
        kind = np.where((kind != 0) & (length > 0), kind_after, 0)
    return cursor.step(int(Inner.RAW_IP), here - cursor.at)


def l2tp(octets: Octets, cursor: Cursor) -> Cursor:
    """RFC 2661 section 3.1: data messages carry PPP."""
    flags = u16(octets, cursor, 0)
    advance = 6 + np.where((flags & 0x4000) != 0, 2, 0) + np.where((flags & 0x0800) != 0, 4, 0)
    offset = octets.column(cursor.at + advance, BIG16)
    advance = advance + np.where((flags & 0x0200) != 0, 2 + offset, 0)
    return cursor.step(np.where((flags & 0x8000) != 0, int(Inner.CONTROL), int(Inner.PPP_FRAME)), advance)


def ayiya(octets: Octets, cursor: Cursor) -> Cursor:
    """draft-massar-v6ops-ayiya: lengths of identity (a power of two) and signature (in units of 4 octets), then what is forwarded."""
    identity = 1 << (u8(octets, cursor, 0) >> 4)
    signature = (u8(octets, cursor, 1) >> 4) * 4
    forwarded = (u8(octets, cursor, 2) & 0xF) == 1
    code = np.where(forwarded, IP_PROTOCOL | u8(octets, cursor, 3), int(Inner.CONTROL))
    return cursor.step(code, 8 + identity + signature)


def capwap(octets: Octets, cursor: Cursor) -> Cursor:
    """RFC 5415 section 4.3: frames between access point and controller, of the air's kind (RFC 5416 section 2.2) or Ethernet's.

    What is encrypted, a fragment or a keep-alive is no frame.
    """
    head = u32(octets, cursor, 0)
    length = ((head >> 19) & 0x1F) * 4
    native, fragment, keep_alive = (head & 0x100) != 0, (head & 0x80) != 0, (head & 8) != 0
    binding = (head >> 9) & 0x1F
    control = octets.column(cursor.at + length, BIG16)
    swapped = ((control & 0x0F) == 8) & ((control & 0x0F00) != 0x0800)
    code = np.select(
        [(head >> 24 != 0) | fragment | keep_alive | (native & (binding != 1)), ~native, swapped],
        [int(Inner.CONTROL), ETHERNET, int(Inner.WLAN_SWAPPED)],
        int(Inner.WLAN),
    )
    return cursor.step(code, np.maximum(length, 8))


def udp_tunnel(octets: Octets, payload: Int64, source_port: Int64, destination_port: Int64) -> Int64:
    """What a UDP datagram's payload is by its ports, where its first octets agree; ``DATAGRAM`` where it is no tunnel."""
    first, word = octets.column(payload, OCTET), octets.column(payload, BIG16)
    second = octets.column(payload + 4, BIG32)
    to, either = destination_port, [source_port, destination_port]
    # Some answer to the port that was used, instead of to the well-known one; then the whole header must fit.
    answers_vxlan = (source_port == 4789) & (octets.column(payload, BIG32) == 0x08000000) & (second & 0xFF == 0)
    # RFC 7348 section 5: reserved bits are ignored; but they are what marks QUIC, so then the frame inside must look like one.
    framed = np.isin(octets.column(payload + 20, BIG16), (0x0800, 0x86DD, 0x8100, 0x0806))
    to_vxlan = np.isin(to, (4789, 8472)) & ((first & 0x08) != 0) & (((first & 0x40) == 0) | framed)
    ethernet_or_ip = np.isin(octets.column(payload + 2, BIG16), (0x6558, 0x0800, 0x86DD))
    answers_geneve = (source_port == 6081) & (first >> 6 == 0) & ethernet_or_ip & (second & 0xFF == 0)

    def ports(*values: int) -> Bool:
        return np.isin(either[0], values) | np.isin(either[1], values)

    return np.select(
        [
            to_vxlan | answers_vxlan,
            (to == 4790) & ((first & 0x08) != 0),
            ((to == 6081) & (first >> 6 == 0)) | answers_geneve,
            ports(3544) & ((first >> 4 == 6) | (word <= 1)),
            ports(2152) & (first >> 4 == 3) & (octets.column(payload + 1, OCTET) == 0xFF),
            ports(1701) & ((word & 0x800F) == 2),
            to == 6635,
            to == 4754,
            ports(5247) & (first <= 1),
            ports(5072) & (octets.column(payload + 3, OCTET) == 41) & (octets.column(payload + 2, OCTET) >> 4 <= 2),
        ],
        [
            int(Inner.VXLAN),
            int(Inner.VXLAN_GPE),
            int(Inner.GENEVE),
            int(Inner.TEREDO),
            int(Inner.GTP_U),
            int(Inner.L2TP),
            MPLS,
            IP_PROTOCOL | 47,
            int(Inner.CAPWAP),
            int(Inner.AYIYA),
        ],
        int(Inner.DATAGRAM),
    )


TUNNEL_LAYERS: dict[int, Layer] = {
    IP_PROTOCOL | 4: Layer("ip in ip", 1, ip_in_ip),
    IP_PROTOCOL | 41: Layer("ip in ip", 1, ip_in_ip),
    IP_PROTOCOL | 94: Layer("ip in ip", 1, ip_in_ip),
    IP_PROTOCOL | 47: Layer("gre", 4, gre),
    IP_PROTOCOL | 97: Layer("etherip", 2, ether_ip),
    IP_PROTOCOL | 137: Layer("mpls", 4, lambda octets, cursor: cursor.step(MPLS, 0)),
    ETHERTYPE | 0x894F: Layer("nsh", 8, network_service_header),
    Inner.ERSPAN_2: Layer("erspan", 8, erspan_2),
    Inner.ERSPAN_3: Layer("erspan", 12, erspan_3),
    Inner.VXLAN: Layer("vxlan", 8, vxlan),
    Inner.VXLAN_GPE: Layer("vxlan", 8, vxlan_gpe),
    Inner.GENEVE: Layer("geneve", 8, geneve),
    Inner.TEREDO: Layer("teredo", 8, teredo),
    Inner.GTP_U: Layer("gtp", 8, gtp_user),
    Inner.L2TP: Layer("l2tp", 6, l2tp),
    Inner.CAPWAP: Layer("capwap", 8, capwap),
    Inner.AYIYA: Layer("ayiya", 8, ayiya),
}
