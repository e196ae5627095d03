"""Every encapsulation gives the same TCP row; what is no TCP is counted by name."""

from __future__ import annotations

import io
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.capture.source import open_capture
from netdiag.capture.writer import PcapngWriter
from netdiag.wire.address import endpoint_of
from netdiag.wire.decode import Decoder, decode, dissect
from netdiag.wire.tables import Interface, Window
from tests.support.encapsulations import DESTINATION_PORT, ENCAPSULATIONS, FOUR, PAYLOAD, SEQ, SOURCE_PORT, outer_udp
from tests.support.packets import (
    ACK,
    EPOCH_NS,
    FIN,
    SYN,
    TcpTalk,
    ethernet,
    ipv4,
    ipv6,
    pcap,
    tcp,
    tcp_conversation,
    timed,
    udp,
    udp_frame,
    window_of,
)
from tests.support.reading import no_packets
from tests.support.tools import needs_tshark


def octets_at(window: Window, offset: int, count: int) -> bytes:
    return bytes(window.buffer[offset : offset + count])


@pytest.mark.parametrize("name", ENCAPSULATIONS)
def test_encapsulation(name: str) -> None:
    link_type, frame = ENCAPSULATIONS[name]
    window = window_of(timed([frame]), link_type=link_type)
    packets = decode(window).packets
    assert len(packets) == 1
    assert packets.seq[0] == SEQ
    assert packets.ack[0] == 7
    assert packets.window[0] == 65535
    assert packets.payload_bytes[0] == packets.captured_payload_bytes[0] == len(PAYLOAD)
    assert octets_at(window, int(packets.payload_offset[0]), len(PAYLOAD)) == PAYLOAD
    network = int(packets.network_offset[0])
    assert endpoint_of(window.buffer, network, 0) in ("192.0.2.1", "2001:db8::a")
    assert endpoint_of(window.buffer, network, 1) in ("198.51.100.2", "2001:db8::b")


@needs_tshark
def test_encapsulations_as_tshark_sees_them(tmp_path: Path) -> None:
    """tshark finds the same ports, sequence number and length in each of them (so the frames are real, not only ours)."""
    path = tmp_path / "all.pcapng"
    interfaces = [Interface(link_type=t, snap_bytes=0, ticks_per_second=10**9) for t, _ in ENCAPSULATIONS.values()]
    with path.open("wb") as file, PcapngWriter(file, interfaces=interfaces) as writer:
        for number, (_, frame) in enumerate(ENCAPSULATIONS.values()):
            writer.packet(frame, EPOCH_NS, interface=number)
    fields = ["tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.len"]
    command = ["tshark", "-r", str(path), "-T", "fields", *(f for field in fields for f in ("-e", field))]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    expected = [str(SOURCE_PORT), str(DESTINATION_PORT), str(SEQ), str(len(PAYLOAD))]
    disagree = {n: line for n, line in zip(ENCAPSULATIONS, said, strict=True) if line.split("\t") != expected}
    assert disagree == {}


def test_tunnelled_flow_has_the_key_of_the_bare_one() -> None:
    bare = decode(window_of(timed([ethernet(FOUR)]))).packets
    tunnelled = decode(window_of(timed([ENCAPSULATIONS["vxlan"][1]]))).packets
    assert (bare.low[0], bare.high[0], bare.direction[0]) == (
        tunnelled.low[0],
        tunnelled.high[0],
        tunnelled.direction[0],
    )


@pytest.mark.parametrize("addresses", [("10.0.0.1", "10.0.0.2"), ("2001:db8::1", "2001:db8::2")])
def test_both_directions_share_endpoint_keys(addresses: tuple[str, str]) -> None:
    talk = TcpTalk(client=(addresses[0], 40000), server=(addresses[1], 443))
    packets = decode(window_of(tcp_conversation([(0, b"a"), (1, b"bb")], talk=talk))).packets
    assert len(np.unique(packets.low)) == len(np.unique(packets.high)) == 1
    assert packets.low[0] < packets.high[0]
    assert packets.direction[0] != packets.direction[1]
    assert packets.direction[0] == packets.direction[2]
    is_v6 = ":" in addresses[0]
    assert bool(packets.low[0] >> np.uint64(63)) is is_v6
    assert (packets.ip_id == -1).all() == is_v6


def test_flags_options_and_header_length() -> None:
    options = b"\x02\x04\x05\xb4\x01\x03\x03\x07"
    window = window_of(tcp_conversation(talk=TcpTalk(), closed=True))
    packets = decode(window).packets
    assert packets.flags.tolist() == [SYN, SYN | ACK, ACK, FIN | ACK, FIN | ACK, ACK]
    frame = ethernet(ipv4(tcp(b"x", flags=SYN, options=options)))
    window = window_of(timed([frame]))
    packets = decode(window).packets
    start = int(packets.payload_offset[0]) - int(packets.header_bytes[0]) + 20
    assert octets_at(window, start, len(options)) == options


def test_udp_is_a_datagram_and_tunnel_ports_are_only_believed_with_a_tunnel_inside() -> None:
    frames = [
        udp_frame(b"query"),
        outer_udp(4789, b"no vxlan at all"),
        outer_udp(2152, b"\x32\x01\0\x04\0\0\0\0\0\0\0\0"),
    ]
    window = window_of(timed(frames))
    datagrams = decode(window).datagrams
    assert datagrams.number.tolist() == [1, 2, 3]
    assert datagrams.destination_port.tolist() == [53, 4789, 2152]
    assert octets_at(window, int(datagrams.payload_offset[0]), 5) == b"query"


def test_multicast_dns_is_left_out_and_counted() -> None:
    decoded = decode(window_of(timed([udp_frame(b"x", destination=("224.0.0.251", 5353)), udp_frame(b"y")])))
    assert decoded.datagrams.number.tolist() == [2]
    assert decoded.not_decoded == {"mdns": 1}


def test_udp_length_limits_the_payload() -> None:
    longer = ethernet(ipv4(udp(b"abcd") + b"trailing", protocol=17))
    zero = ethernet(ipv6(udp(b"abcd")[:4] + b"\0\0\0\0" + b"abcd", next_header=17))
    datagrams = decode(window_of(timed([longer, zero]))).datagrams
    assert datagrams.payload_bytes.tolist() == [4, 4]


def test_what_is_no_tcp_is_counted_by_name() -> None:
    frames = [
        ethernet(bytes(28), ethertype=0x0806),
        ethernet(bytes(28), ethertype=0x88CC),
        ethernet(bytes(28), ethertype=0x1234 + 0x800),
        ethernet(ipv4(bytes(8), protocol=1)),
        ethernet(ipv4(bytes(8), protocol=2)),
        ethernet(ipv4(bytes(12), protocol=132)),
        ethernet(ipv6(bytes(8), next_header=58)),
        ethernet(b"\x55" + bytes(30), ethertype=0x0800),
        ethernet(FOUR)[:20],
        b"short",
    ]
    decoded = decode(window_of(timed(frames)))
    assert decoded.not_decoded == {
        "arp": 1,
        "lldp": 1,
        "ethertype 0x1a34": 1,
        "icmp": 1,
        "igmp": 1,
        "sctp": 1,
        "icmpv6": 1,
        "impossible header": 1,
        "cut inside ipv4": 1,
        "cut inside ethernet": 1,
    }
    assert len(decoded.packets) == len(decoded.datagrams) == 0


@pytest.mark.parametrize(
    ("link_type", "name"),
    [(195, "link type IEEE802_15_4_WITHFCS"), (189, "link type USB_LINUX"), (60000, "link type 60000")],
)
def test_link_types_that_are_not_decoded_are_named(link_type: int, name: str) -> None:
    decoded = decode(window_of(timed([bytes(60)] * 3), link_type=link_type))
    assert decoded.not_decoded == {name: 3}


def test_snap_length_cut_keeps_the_length_of_the_ip_header() -> None:
    frame = ethernet(ipv4(tcp(b"z" * 1000)))
    raw = pcap(timed([frame]), snap_bytes=60)
    window = _window(raw)
    packets = decode(window).packets
    assert (packets.payload_bytes[0], packets.captured_payload_bytes[0]) == (1000, 6)


@pytest.mark.parametrize("kept", range(14, 55))
def test_a_tcp_header_needs_sixteen_octets(kept: int) -> None:
    frame = ethernet(ipv4(tcp(b"", seq=9, window=77)))
    decoded = decode(_window(pcap(timed([frame]), snap_bytes=kept)))
    assert len(decoded.packets) == (1 if kept >= 14 + 20 + 16 else 0)
    assert len(decoded.packets) + decoded.not_decoded.total() == 1
    if len(decoded.packets):
        assert (decoded.packets.seq[0], decoded.packets.window[0]) == (9, 77)


@pytest.mark.parametrize("data_offset", [0, 4, 15])
def test_impossible_header_length_leaves_no_payload(data_offset: int) -> None:
    segment = bytearray(tcp(b"abc"))
    segment[12] = data_offset << 4
    decoded = decode(window_of(timed([ethernet(ipv4(tcp())), ethernet(ipv4(bytes(segment)))])))
    assert decoded.packets.payload_bytes.tolist() == [0, 0]
    assert decoded.packets.captured_payload_bytes.tolist() == [0, 0]
    assert [(a.protocol, a.packet) for a in decoded.anomalies] == [("tcp", 2)]


def test_impossible_ip_headers_are_one_anomaly() -> None:
    bad = ethernet(b"\x43" + bytes(30), ethertype=0x0800)
    (anomaly,) = decode(window_of(timed([ethernet(FOUR), bad, bad]))).anomalies
    assert (anomaly.protocol, anomaly.packet) == ("ip", 2)
    assert "2 packets" in anomaly.reason


def test_frame_check_sequence_does_not_count_where_ip_has_no_length() -> None:
    frame = ethernet(FOUR[:2] + b"\0\0" + FOUR[4:]) + b"FCS!"
    raw = bytearray(pcap(timed([frame])))
    struct.pack_into("<I", raw, 20, 1 | 0x0400_0000 | 2 << 28)
    packets = decode(_window(bytes(raw))).packets
    assert packets.payload_bytes.tolist() == [len(PAYLOAD)]


def test_rows_are_in_file_order_whatever_path_they_took() -> None:
    frames = [frame for link_type, frame in ENCAPSULATIONS.values() if link_type == 1] * 3
    packets = decode(window_of(timed(frames))).packets
    assert packets.number.tolist() == list(range(1, len(frames) + 1))
    assert (packets.seq == SEQ).all()


def test_endless_nesting_ends() -> None:
    frame = ethernet(b"".join(b"\0\x05\x81\0" for _ in range(200)) + FOUR, ethertype=0x8100)
    decoded = decode(window_of(timed([frame])))
    assert decoded.not_decoded == {"nested too deep": 1}


def test_no_packets() -> None:
    decoded = decode(Window(buffer=b"", packets=no_packets(), interfaces=(), end_offset=0))
    assert len(decoded.packets) == len(decoded.datagrams) == 0


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(ENCAPSULATIONS)),
            st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=6),
            st.integers(0, 200),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_damaged_frames_never_raise_and_never_point_outside(
    choices: list[tuple[str, list[tuple[int, int]], int]],
) -> None:
    """Any octets changed, any end cut off: each packet is either a row or counted, and rows stay inside their packet."""
    by_link: dict[int, list[bytes]] = {}
    for name, changes, kept in choices:
        link_type, frame = ENCAPSULATIONS[name]
        damaged = bytearray(frame)
        for place, value in changes:
            damaged[place % len(damaged)] = value
        by_link.setdefault(link_type, []).append(bytes(damaged[: max(1, len(damaged) - kept)]))
    for link_type, frames in by_link.items():
        window = window_of(timed(frames), link_type=link_type)
        decoded = decode(window)
        counted = len(decoded.packets) + len(decoded.datagrams) + len(decoded.icmp) + decoded.not_decoded.total()
        assert counted == len(frames)
        raw = window.packets
        for table in (decoded.packets, decoded.datagrams):
            end = raw.data_offset[table.number - 1] + raw.captured_bytes[table.number - 1]
            assert (table.captured_payload_bytes >= 0).all()
            assert (table.captured_payload_bytes <= table.payload_bytes).all()
            inside = table.payload_offset + table.captured_payload_bytes <= end
            assert (inside | (table.captured_payload_bytes == 0)).all()
            assert (table.network_offset >= raw.data_offset[table.number - 1]).all()


def test_decoder_and_decode_agree_on_a_window() -> None:
    window = window_of(tcp_conversation([(0, b"x" * 5000)]))
    assert decode(window).packets.seq.tolist() == Decoder().complete(dissect(window)).packets.seq.tolist()


def _window(raw: bytes) -> Window:
    (window,) = open_capture(io.BytesIO(raw)).windows()
    return window


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
