"""Hashes of endpoints that collide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from netdiag.wire.tables import Packets
from tests.support.conversation import CLIENT, Conversation, Wire, interleaved


def collide(packets: Packets) -> Packets:
    """The same packets with one and the same hashed key for every pair of endpoints."""
    same = np.full(len(packets), 1 << 63, np.uint64)
    return replace(packets, low=same, high=same + np.uint64(1))


def test_colliding_hashes_are_told_apart_by_the_addresses() -> None:
    one = Conversation(client=("2001:db8::1", 40000), server=("2001:db8::2", 443)).opens()
    two = Conversation(client=("2001:db8::3", 40000), server=("2001:db8::2", 443), isns=(50, 60)).opens()
    one.client(b"one")
    two.client(b"two")
    honest = interleaved(one, two)
    wire = Wire(collide(honest.packets), honest.buffer)
    assert wire.flows.count == 2
    assert {wire.octets(CLIENT, 0), wire.octets(CLIENT, 1)} == {b"one", b"two"}
