"""802.11 frames behind every driver header: what is inside them is reached, or said not to be."""

from __future__ import annotations

import struct

import pytest

from netdiag.wire.decode import decode
from tests.support.encapsulations import SNAP, wlan
from tests.support.packets import ipv4, tcp, timed, window_of

PACKET = ipv4(tcp(b"hello", seq=77))
DATA = wlan(SNAP + PACKET, control=0x0208)
IEEE_802_11, PRISM, RADIOTAP, AVS, PPI = 105, 119, 127, 163, 192
MANAGEMENT = wlan(SNAP + PACKET, control=0x0080)
NULL_FUNCTION = wlan(SNAP + PACKET, control=0x0248)
PROTECTED = wlan(SNAP + PACKET, control=0x4208)


def seqs(frame: bytes, link_type: int) -> list[int]:
    return decode(window_of(timed([frame]), link_type=link_type)).packets.seq.tolist()


def why_not(frame: bytes, link_type: int) -> list[str]:
    return list(decode(window_of(timed([frame]), link_type=link_type)).not_decoded)


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_prism_header_in_the_byte_order_of_the_capturing_host(order: str) -> None:
    header = struct.pack(f"{order}II", 0x44, 144) + bytes(136)
    assert seqs(header + DATA, PRISM) == [77]


@pytest.mark.parametrize("link_type", [AVS, PRISM])
def test_an_avs_header_under_either_link_type(link_type: int) -> None:
    header = struct.pack(">II", 0x80211001, 64) + bytes(56)
    assert seqs(header + DATA, link_type) == [77]


def test_per_packet_information_names_the_link_type_inside() -> None:
    assert seqs(struct.pack("<BBHI", 0, 0, 12, IEEE_802_11) + bytes(4) + DATA, PPI) == [77]


@pytest.mark.parametrize(
    ("frame", "link_type"),
    [
        (struct.pack("<BBHI", 0, 0, 4, 0) + DATA, RADIOTAP),
        (struct.pack("<BBHI", 0, 0, 5000, 0) + DATA, RADIOTAP),
        (struct.pack(">II", 0x80211001, 7) + bytes(56) + DATA, AVS),
        (struct.pack("<BBHI", 0, 0, 8, PPI) + DATA, PPI),
    ],
    ids=["radiotap too short", "radiotap too long", "avs too short", "ppi in ppi"],
)
def test_impossible_driver_headers(frame: bytes, link_type: int) -> None:
    assert seqs(frame, link_type) == []
    assert why_not(frame, link_type) == ["impossible header"]


def test_radiotap_fields_are_aligned_before_the_flags_are_read() -> None:
    """TSFT (8 octets, aligned to 8) stands before the flags; one presence word more moves both."""
    for words in (struct.pack("<I", 3), struct.pack("<II", 0x8000_0003, 0)):
        fields = bytes(-(4 + len(words)) % 8) + bytes(8) + b"\x20"
        header = struct.pack("<BBH", 0, 0, 4 + len(words) + len(fields)) + words + fields
        padded = wlan(b"\0\0" + SNAP + PACKET, control=0x0288, quality=b"\0\0")
        assert seqs(header + padded, RADIOTAP) == [77]


def test_the_first_subframe_of_an_aggregate_is_read() -> None:
    subframe = bytes(12) + struct.pack(">H", len(SNAP + PACKET)) + SNAP + PACKET
    assert seqs(wlan(subframe, control=0x0288, quality=b"\x80\0"), IEEE_802_11) == [77]


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (MANAGEMENT, "802.11 management, control or no data"),
        (NULL_FUNCTION, "802.11 management, control or no data"),
        (PROTECTED, "802.11 encrypted"),
    ],
)
def test_frames_without_readable_data_are_counted_by_why(frame: bytes, why: str) -> None:
    assert why_not(frame, IEEE_802_11) == [why]
