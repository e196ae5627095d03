"""TCP headers."""

from __future__ import annotations

import pytest

from netdiag.wire.decode import decode
from tests.support.packets import (
    ACK,
    FIN,
    SYN,
    TcpTalk,
    ethernet,
    ipv4,
    octets_at,
    opened,
    pcap,
    tcp,
    tcp_conversation,
    timed,
    window_of,
)


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


@pytest.mark.parametrize("kept", range(14, 55))
def test_a_tcp_header_needs_sixteen_octets(kept: int) -> None:
    frame = ethernet(ipv4(tcp(b"", seq=9, window=77)))
    decoded = decode(opened(pcap(timed([frame]), snap_bytes=kept)))
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
