"""Every encapsulation gives the same TCP row; what is no TCP is counted by name."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.capture.writer import PcapngWriter
from netdiag.wire.address import endpoint_of
from netdiag.wire.decode import Decoder, decode, dissect
from netdiag.wire.tables import Interface, Window
from tests.support.encapsulations import DESTINATION_PORT, ENCAPSULATIONS, FOUR, PAYLOAD, SEQ, SOURCE_PORT
from tests.support.packets import (
    EPOCH_NS,
    TcpTalk,
    ethernet,
    ipv4,
    ipv6,
    octets_at,
    tcp_conversation,
    timed,
    window_of,
)
from tests.support.reading import no_packets
from tests.support.tools import needs_tshark


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


def test_rows_are_in_file_order_whatever_path_they_took() -> None:
    frames = [frame for link_type, frame in ENCAPSULATIONS.values() if link_type == 1] * 3
    packets = decode(window_of(timed(frames))).packets
    assert packets.number.tolist() == list(range(1, len(frames) + 1))
    assert (packets.seq == SEQ).all()


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
