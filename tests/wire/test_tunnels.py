"""Packets in packets."""

from __future__ import annotations

from netdiag.wire.decode import decode
from tests.support.encapsulations import ENCAPSULATIONS, FOUR
from tests.support.packets import (
    ethernet,
    timed,
    window_of,
)


def test_tunnelled_flow_has_the_key_of_the_bare_one() -> None:
    bare = decode(window_of(timed([ethernet(FOUR)]))).packets
    tunnelled = decode(window_of(timed([ENCAPSULATIONS["vxlan"][1]]))).packets
    assert (bare.low[0], bare.high[0], bare.direction[0]) == (
        tunnelled.low[0],
        tunnelled.high[0],
        tunnelled.direction[0],
    )
