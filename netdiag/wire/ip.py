"""IPv4 (RFC 791), IPv6 (RFC 8200) and what stands between them and the transport layer."""

from __future__ import annotations

import numpy as np

from netdiag.wire.codes import IP_PROTOCOL, IPV4, IPV6, Inner
from netdiag.wire.cursor import Cursor, Layer, u8, u16
from netdiag.wire.octets import Octets

IPV4_HEADER = np.dtype(
    {
        "names": ["version", "length", "identification", "fragment", "ttl", "protocol", "source", "destination"],
        "formats": ["u1", ">u2", ">u2", ">u2", "u1", "u1", ">u4", ">u4"],
        "offsets": [0, 2, 4, 6, 8, 9, 12, 16],
        "itemsize": 20,
    }
)
MORE_OR_OFFSET = 0x3FFF
"""Flags-and-offset bits that make a packet a fragment: more fragments, or a place other than the first."""


def ipv4(octets: Octets, cursor: Cursor) -> Cursor:
    """To the payload, cut to the total length. Length 0: segmentation offload left it to the network card; the frame's length counts."""
    header = octets.rows(cursor.at, IPV4_HEADER)
    header_bytes = (header["version"].astype(np.int64) & 15) * 4
    total = header["length"].astype(np.int64)
    good = (header["version"] >> 4 == 4) & (header_bytes >= 20) & ((total >= header_bytes) | (total == 0))
    fragment = (header["fragment"] & MORE_OR_OFFSET) != 0
    code = np.select(
        [~good, fragment],
        [int(Inner.BAD_HEADER), int(Inner.FRAGMENT_4)],
        IP_PROTOCOL | header["protocol"].astype(np.int64),
    )
    reach = np.where(total == 0, cursor.wire_end, np.minimum(cursor.at + total, cursor.bound))
    return cursor.at_network().step(code, np.where(good, header_bytes, 20), wire_end=reach)


def ipv6(octets: Octets, cursor: Cursor) -> Cursor:
    """To the payload, cut to the payload length. Length 0: a jumbogram (RFC 2675) or segmentation offload; the frame's length counts."""
    length = u16(octets, cursor, 4)
    good = u8(octets, cursor, 0) >> 4 == 6
    code = np.where(good, IP_PROTOCOL | u8(octets, cursor, 6), int(Inner.BAD_HEADER))
    return cursor.at_network().step(
        code, 40, wire_end=np.where(length == 0, cursor.wire_end, np.minimum(cursor.at + 40 + length, cursor.bound))
    )


def extension_header(octets: Octets, cursor: Cursor) -> Cursor:
    """Hop-by-hop, routing, destination options, mobility, HIP, shim6: next header, and length in units of 8 octets."""
    return cursor.step(IP_PROTOCOL | u8(octets, cursor, 0), (u8(octets, cursor, 1) + 1) * 8)


def authentication_header(octets: Octets, cursor: Cursor) -> Cursor:
    """RFC 4302: length in units of 4 octets, minus 2."""
    return cursor.step(IP_PROTOCOL | u8(octets, cursor, 0), (u8(octets, cursor, 1) + 2) * 4)


def fragment_header(octets: Octets, cursor: Cursor) -> Cursor:
    """RFC 8200 section 4.5. Offset 0 and no more: an atomic fragment (RFC 6946), a whole packet."""
    whole = (u16(octets, cursor, 2) & 0xFFF9) == 0
    code = np.where(whole, IP_PROTOCOL | u8(octets, cursor, 0), int(Inner.FRAGMENT_6))
    return cursor.step(code, np.where(whole, 8, 0))


IP_LAYERS: dict[int, Layer] = {
    IPV4: Layer("ipv4", 20, ipv4),
    IPV6: Layer("ipv6", 40, ipv6),
    IP_PROTOCOL | 0: Layer("hop-by-hop options", 8, extension_header),
    IP_PROTOCOL | 43: Layer("routing header", 8, extension_header),
    IP_PROTOCOL | 44: Layer("fragment header", 8, fragment_header),
    IP_PROTOCOL | 51: Layer("authentication header", 8, authentication_header),
    IP_PROTOCOL | 60: Layer("destination options", 8, extension_header),
    IP_PROTOCOL | 135: Layer("mobility header", 8, extension_header),
    IP_PROTOCOL | 139: Layer("hip", 8, extension_header),
    IP_PROTOCOL | 140: Layer("shim6", 8, extension_header),
}
