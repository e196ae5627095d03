"""IP headers."""

from __future__ import annotations

from netdiag.wire.decode import decode
from tests.support.encapsulations import FOUR
from tests.support.packets import (
    ethernet,
    ipv4,
    opened,
    pcap,
    tcp,
    timed,
    window_of,
)


def test_snap_length_cut_keeps_the_length_of_the_ip_header() -> None:
    frame = ethernet(ipv4(tcp(b"z" * 1000)))
    raw = pcap(timed([frame]), snap_bytes=60)
    window = opened(raw)
    packets = decode(window).packets
    assert (packets.payload_bytes[0], packets.captured_payload_bytes[0]) == (1000, 6)


def test_impossible_ip_headers_are_one_anomaly() -> None:
    bad = ethernet(b"\x43" + bytes(30), ethertype=0x0800)
    (anomaly,) = decode(window_of(timed([ethernet(FOUR), bad, bad]))).anomalies
    assert (anomaly.protocol, anomaly.packet) == ("ip", 2)
    assert "2 packets" in anomaly.reason
