"""ICMP errors and the packets that they are about."""

from __future__ import annotations

import struct

import pytest

from netdiag.wire.address import endpoint_of
from netdiag.wire.decode import decode
from tests.support.packets import ethernet, ipv4, ipv6, tcp, timed, udp, window_of


def message(kind: int, code: int, rest: int, about: bytes) -> bytes:
    return struct.pack(">BBHI", kind, code, 0, rest) + about


TCP_PACKET = ipv4(tcp(b"hello", source_port=40000, destination_port=443, seq=77))


def test_unreachable_about_a_tcp_packet() -> None:
    frames = [
        ethernet(TCP_PACKET),
        ethernet(ipv4(message(3, 13, 0, TCP_PACKET[:28]), source="10.0.0.254", destination="10.0.0.1", protocol=1)),
    ]
    window = window_of(timed(frames))
    decoded = decode(window)
    (error,) = decoded.icmp
    assert (error.packet, error.version, error.type, error.code, error.mtu) == (2, 4, 3, 13, None)
    assert (error.protocol, error.source_port, error.destination_port, error.seq) == (6, 40000, 443, 77)
    packets = decoded.packets
    assert (error.low, error.high, error.direction) == (packets.low[0], packets.high[0], packets.direction[0])
    assert endpoint_of(window.buffer, error.network_offset, 0) == "10.0.0.254"
    assert endpoint_of(window.buffer, error.inner_network_offset, 1) == "10.0.0.2"
    assert decoded.not_decoded == {}


def test_fragmentation_needed_says_the_mtu() -> None:
    frame = ethernet(ipv4(message(3, 4, 1400, TCP_PACKET[:28]), protocol=1))
    (error,) = decode(window_of(timed([frame]))).icmp
    assert error.mtu == 1400


def test_an_mtu_of_zero_is_not_known() -> None:
    frame = ethernet(ipv4(message(3, 4, 0, TCP_PACKET[:28]), protocol=1))
    (error,) = decode(window_of(timed([frame]))).icmp
    assert error.mtu is None


def test_packet_too_big_about_ipv6() -> None:
    about = ipv6(tcp(b"x" * 1400, source_port=5, destination_port=6))[:300]
    frame = ethernet(ipv6(message(2, 0, 1280, about), next_header=58))
    (error,) = decode(window_of(timed([frame]))).icmp
    assert (error.version, error.type, error.mtu, error.source_port) == (6, 2, 1280, 5)


def test_port_unreachable_about_a_datagram() -> None:
    about = ipv4(udp(b"query", source_port=4444, destination_port=53), protocol=17)
    frame = ethernet(ipv4(message(3, 3, 0, about), protocol=1))
    (error,) = decode(window_of(timed([frame]))).icmp
    assert (error.protocol, error.source_port, error.destination_port, error.seq) == (17, 4444, 53, None)


@pytest.mark.parametrize(("kind", "protocol", "name"), [(8, 1, "icmp"), (0, 1, "icmp"), (135, 58, "icmpv6")])
def test_other_messages_are_counted(kind: int, protocol: int, name: str) -> None:
    payload = message(kind, 0, 0, bytes(32))
    packet = ipv4(payload, protocol=1) if protocol == 1 else ipv6(payload, next_header=58)
    decoded = decode(window_of(timed([ethernet(packet)])))
    assert decoded.icmp == []
    assert decoded.not_decoded == {name: 1}


@pytest.mark.parametrize("kept", range(37))
def test_errors_that_are_cut_are_only_counted(kept: int) -> None:
    frame = ethernet(ipv4(message(3, 1, 0, TCP_PACKET[:28])[:kept], protocol=1))
    decoded = decode(window_of(timed([frame])))
    assert len(decoded.icmp) + decoded.not_decoded.total() == 1
    assert len(decoded.icmp) == (1 if kept == 36 else 0)
