"""Addresses and ports of connections."""

from __future__ import annotations

from netdiag.wire.connections import track
from netdiag.wire.decode import decode
from netdiag.wire.endpoints import endpoints
from tests.support.fragmenting import fragments_v4
from tests.support.packets import (
    SYN,
    tcp,
    timed,
    window_of,
)


def test_a_header_in_fragments_shows_its_ports_and_arrives_with_the_last() -> None:
    window = window_of(timed(fragments_v4(tcp(source_port=12345, destination_port=8080, seq=7, flags=SYN), 8)))
    packets = decode(window).packets
    flows = track(packets, window.buffer)
    assert endpoints(flows, window.buffer).of(0) == (("10.0.0.1", 12345), ("10.0.0.2", 8080))
    assert (packets.number.tolist(), packets.flags.tolist()) == ([3], [SYN])
