"""802.11 frames and the headers that capture drivers put before them."""

from __future__ import annotations

import numpy as np

from netdiag.wire.codes import LINK_TYPE, Inner
from netdiag.wire.cursor import Cursor, Layer, le16, le32, u16, u32
from netdiag.wire.octets import Octets
from netdiag.wire.tables import Int64

DATA_FRAME = 2
RADIOTAP_TSFT, RADIOTAP_FLAGS = 1, 2
FLAG_PADDED = 0x20
MAX_DRIVER_HEADER = 4096


def radiotap(octets: Octets, cursor: Cursor) -> Cursor:
    """radiotap.org: a length; the flags say whether the 802.11 header is padded to 32 bits."""
    length = le16(octets, cursor, 2)
    present = le32(octets, cursor, 4)
    fields = _radiotap_fields(octets, cursor, present)
    fields = np.where((present & RADIOTAP_TSFT) != 0, ((fields - cursor.at + 7) & -8) + cursor.at + 8, fields)
    flags = octets.column(fields, np.dtype("u1"))
    padded = ((present & RADIOTAP_FLAGS) != 0) & ((flags & FLAG_PADDED) != 0)
    good = (length >= 8) & (length < MAX_DRIVER_HEADER)
    code = np.select([~good, padded], [int(Inner.BAD_HEADER), int(Inner.WLAN_PADDED)], int(Inner.WLAN))
    return cursor.step(code, np.where(good, length, 8))


def _radiotap_fields(octets: Octets, cursor: Cursor, present: Int64) -> Int64:
    """Where the fields begin: behind all presence words, of which bit 31 announces another."""
    here, word = cursor.at + 8, present
    for _ in range(8):
        more = (word & 0x8000_0000) != 0
        if not more.any():
            break
        word = np.where(more, octets.column(here, np.dtype("<u4")), 0)
        here = here + np.where(more, 4, 0)
    return here


def prism(octets: Octets, cursor: Cursor) -> Cursor:
    """A message code, and its length in the byte order of the capturing host; an AVS header may come under the same link type."""
    avs_like = (u32(octets, cursor, 0) & 0xFFFFF000) == 0x80211000
    length = np.where(le32(octets, cursor, 4) < MAX_DRIVER_HEADER, le32(octets, cursor, 4), u32(octets, cursor, 4))
    length = np.where(avs_like, u32(octets, cursor, 4), length)
    return _behind_driver_header(cursor, length)


def avs(octets: Octets, cursor: Cursor) -> Cursor:
    """Version and length in network order."""
    return _behind_driver_header(cursor, u32(octets, cursor, 4))


def _behind_driver_header(cursor: Cursor, length: Int64) -> Cursor:
    good = (length >= 8) & (length < MAX_DRIVER_HEADER)
    return cursor.step(np.where(good, int(Inner.WLAN), int(Inner.BAD_HEADER)), np.where(good, length, 8))


def per_packet_information(octets: Octets, cursor: Cursor) -> Cursor:
    """PPI: its length, and the link type of what follows."""
    length, inner = le16(octets, cursor, 2), le32(octets, cursor, 4)
    good = (length >= 8) & (inner < 65536) & (inner != 192)
    return cursor.step(np.where(good, LINK_TYPE | inner, int(Inner.BAD_HEADER)), np.where(good, length, 8))


def wlan(octets: Octets, cursor: Cursor) -> Cursor:
    """IEEE 802.11-2020 section 9.2: data frames that are not encrypted carry LLC."""
    return _wlan(octets, cursor, padded=False)


def wlan_padded(octets: Octets, cursor: Cursor) -> Cursor:
    """The same with the header padded to 32 bits."""
    return _wlan(octets, cursor, padded=True)


def wlan_swapped(octets: Octets, cursor: Cursor) -> Cursor:
    """The same with the octets of the frame control the wrong way round."""
    return _wlan(octets, cursor, padded=False, swapped=True)


def _wlan(octets: Octets, cursor: Cursor, *, padded: bool, swapped: bool = False) -> Cursor:
    control = u16(octets, cursor, 0) if swapped else le16(octets, cursor, 0)
    kind, subtype = (control >> 2) & 3, (control >> 4) & 15
    quality = (subtype & 8) != 0
    four_addresses = (control & 0x300) == 0x300
    header = 24 + np.where(four_addresses, 6, 0)
    aggregated = quality & ((octets.column(cursor.at + header, np.dtype("u1")) & 0x80) != 0)
    header = header + np.where(quality, np.where((control & 0x8000) != 0, 6, 2), 0)
    if padded:
        header = (header + 3) & -4
    carries_data = (kind == DATA_FRAME) & ((subtype & 4) == 0)
    code = np.select(
        [~carries_data, (control & 0x4000) != 0],
        [int(Inner.WLAN_NO_DATA), int(Inner.WLAN_ENCRYPTED)],
        int(Inner.LLC_HEADER),
    )
    # An A-MSDU's first subframe: two addresses and a length before its LLC header.
    return cursor.step(code, header + np.where(aggregated & carries_data, 14, 0))


WLAN_LAYERS: dict[int, Layer] = {
    LINK_TYPE | 105: Layer("802.11", 10, wlan),
    LINK_TYPE | 119: Layer("prism", 8, prism),
    LINK_TYPE | 127: Layer("radiotap", 8, radiotap),
    LINK_TYPE | 163: Layer("avs", 8, avs),
    LINK_TYPE | 192: Layer("ppi", 8, per_packet_information),
    Inner.WLAN: Layer("802.11", 10, wlan),
    Inner.WLAN_PADDED: Layer("802.11", 10, wlan_padded),
    Inner.WLAN_SWAPPED: Layer("802.11", 10, wlan_swapped),
}
