"""Link-layer headers."""

from __future__ import annotations

import struct

import pytest

from netdiag.wire.decode import decode
from tests.support.encapsulations import FOUR, PAYLOAD
from tests.support.packets import (
    ethernet,
    ipv4,
    opened,
    pcap,
    tcp,
    timed,
    window_of,
)


@pytest.mark.parametrize(
    ("link_type", "name"),
    [(195, "link type IEEE802_15_4_WITHFCS"), (189, "link type USB_LINUX"), (60000, "link type 60000")],
)
def test_link_types_that_are_not_decoded_are_named(link_type: int, name: str) -> None:
    decoded = decode(window_of(timed([bytes(60)] * 3), link_type=link_type))
    assert decoded.not_decoded == {name: 3}


def test_frame_check_sequence_does_not_count_where_ip_has_no_length() -> None:
    frame = ethernet(FOUR[:2] + b"\0\0" + FOUR[4:]) + b"FCS!"
    raw = bytearray(pcap(timed([frame])))
    struct.pack_into("<I", raw, 20, 1 | 0x0400_0000 | 2 << 28)
    packets = decode(opened(bytes(raw))).packets
    assert packets.payload_bytes.tolist() == [len(PAYLOAD)]


def test_padding_that_an_ip_length_counts_in_is_no_payload_where_the_link_layer_says_so() -> None:
    """A broken router wrote the padded length into the IP header; PPPoE and 802.3 lengths tell."""
    packet = ipv4(tcp(b"", seq=5), total_length=46) + bytes(6)
    pppoe = ethernet(struct.pack(">BBHHH", 0x11, 0, 1, 42, 0x21) + packet, ethertype=0x8864)
    in_802_3 = ethernet(b"\xaa\xaa\x03\0\0\0\x08\0" + packet, ethertype=48)
    packets = decode(window_of(timed([pppoe, in_802_3]))).packets
    assert packets.payload_bytes.tolist() == [0, 0]


def test_a_mirrored_packet_that_the_switch_cut_keeps_its_length() -> None:
    frame = ethernet(ipv4(tcp(b"z" * 1000)))[:128]
    packets = decode(window_of(timed([frame]))).packets
    assert (packets.payload_bytes[0], packets.captured_payload_bytes[0]) == (1000, 128 - 54)
