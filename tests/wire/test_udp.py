"""UDP headers."""

from __future__ import annotations

from netdiag.wire.decode import decode
from tests.support.encapsulations import outer_udp
from tests.support.packets import (
    ethernet,
    ipv4,
    ipv6,
    octets_at,
    timed,
    udp,
    udp_frame,
    window_of,
)


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
