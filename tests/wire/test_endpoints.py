"""Addresses and ports of connections."""

from __future__ import annotations

import pytest

from netdiag.wire.connections import track
from netdiag.wire.decode import decode
from netdiag.wire.endpoints import endpoints
from tests.support.conversation import CLIENT, SERVER, Conversation
from tests.support.fragmenting import fragments_v4
from tests.support.packets import (
    ACK,
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


@pytest.mark.parametrize(("side", "flags"), [(CLIENT, SYN), (SERVER, SYN | ACK)])
def test_whoever_is_seen_first_the_clients_endpoint_comes_first(side: int, flags: int) -> None:
    talk = Conversation(client=("10.0.0.9", 50000), server=("10.0.0.2", 8443))
    talk.packet(side, flags=flags)
    wire = talk.wire()
    found = endpoints(wire.flows, wire.buffer)
    assert found.of(0) == (("10.0.0.9", 50000), ("10.0.0.2", 8443))
    assert found.server_port(0) == 8443


def test_ipv6_addresses_are_in_their_short_form() -> None:
    talk = Conversation(client=("2001:db8::1", 50000), server=("2001:db8:0:0::2", 443)).opens()
    wire = talk.wire()
    assert endpoints(wire.flows, wire.buffer).of(0) == (("2001:db8::1", 50000), ("2001:db8::2", 443))
