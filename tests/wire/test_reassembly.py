"""Packets that became whole: their rows, fragment by fragment."""

from __future__ import annotations

import io

import pytest

from netdiag.capture.source import open_capture
from netdiag.wire.decode import decode
from tests.support.encapsulations import ENCAPSULATIONS, SEQ
from tests.support.fragmenting import fragments_v4, stream_of
from tests.support.packets import (
    ACK,
    FIN,
    PSH,
    SYN,
    pcap,
    tcp,
    timed,
    window_of,
)

DATA = bytes(range(256)) * 10


SEGMENT = tcp(DATA, seq=1000, flags=ACK | PSH, options=b"\x01\x01\x08\x0a" + bytes(8))


def test_syn_with_data_counts_its_own_number_once() -> None:
    frames = fragments_v4(tcp(b"q" * 100, seq=2**32 - 10, flags=SYN | FIN), 64)
    packets = decode(window_of(timed(frames))).packets
    assert packets.flags.tolist() == [SYN, FIN]
    assert packets.seq.tolist() == [2**32 - 10, (2**32 - 10 + 1 + 44) % 2**32]
    assert packets.payload_bytes.tolist() == [44, 56]


def test_options_stay_reachable_when_the_first_fragment_holds_the_header() -> None:
    window = window_of(timed(fragments_v4(SEGMENT, 512)))
    packets = decode(window).packets
    assert packets.header_bytes.tolist()[0] == 32
    start = int(packets.payload_offset[0]) - 12
    assert bytes(window.buffer[start : start + 4]) == b"\x01\x01\x08\x0a"
    assert set(packets.header_bytes.tolist()[1:]) == {20}


def test_a_header_cut_by_the_snap_length_inside_a_fragment_has_the_options_that_are_there() -> None:
    frames = fragments_v4(SEGMENT, 512)
    header_at = len(frames[0]) - 512
    (window,) = open_capture(io.BytesIO(pcap(timed(frames), snap_bytes=header_at + 24))).windows()
    packets = decode(window).packets
    assert packets.header_bytes.tolist()[0] == 24
    assert packets.captured_payload_bytes.tolist()[0] == 0
    start = int(packets.payload_offset[0]) - 24
    assert int.from_bytes(window.buffer[start : start + 2], "big") == 40000


def test_snap_cut_fragments_miss_octets() -> None:
    frames = fragments_v4(SEGMENT, 512)
    (window,) = open_capture(io.BytesIO(pcap(timed(frames), snap_bytes=200))).windows()
    packets = decode(window).packets
    assert packets.payload_bytes.sum() == len(DATA)
    assert (packets.captured_payload_bytes < packets.payload_bytes).any()


@pytest.mark.parametrize("name", ["gre", "vxlan", "6in4"])
def test_tunnel_packets_in_fragments(name: str) -> None:
    """The outer packet was too long: the inner TCP segment is found all the same."""
    outer = ENCAPSULATIONS[name][1][14:]
    protocol, inner = outer[9], outer[20:]
    window = window_of(timed(fragments_v4(inner, 80, protocol=protocol)))
    packets = decode(window).packets
    assert int(packets.seq.min()) == SEQ
    assert stream_of(packets, window) == b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
