"""Packets in packets."""

from __future__ import annotations

import pytest

from netdiag.wire.decode import decode
from tests.support.encapsulations import CAPWAP_NATIVE, ENCAPSULATIONS, FOUR, SNAP, outer_udp, wlan
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


@pytest.mark.parametrize("control", [0x0208, 0x0802])
def test_capwap_with_either_order_of_the_frame_control(control: int) -> None:
    frame = outer_udp(5247, CAPWAP_NATIVE + wlan(SNAP + FOUR, control=control))
    found = decode(window_of(timed([frame, ethernet(FOUR)]))).packets
    assert found.low[0] == found.low[1]
    assert found.seq[0] == found.seq[1]


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (b"\1\0\0\0\x16\xfe\xfd\0", "encrypted"),
        (b"\0\x20\3\xa0", "a fragment"),
        (b"\0\x20\3\x28", "a keep-alive"),
        (b"\0\x20\7\x20", "EPCglobal"),
    ],
)
def test_capwap_without_a_frame_inside(head: bytes, why: str) -> None:
    frame = outer_udp(5247, head + CAPWAP_NATIVE[len(head) :] + wlan(SNAP + FOUR, control=0x0208))
    found = decode(window_of(timed([frame])))
    assert len(found.packets) == 0, why
    assert found.not_decoded == {"tunnel control message": 1}


@pytest.mark.parametrize("opcode", [0, 2])
def test_ayiya_that_forwards_nothing(opcode: int) -> None:
    frame = outer_udp(5072, b"\x41\x52" + bytes((0x10 | opcode, 41)) + bytes(80))
    assert decode(window_of(timed([frame]))).not_decoded == {"tunnel control message": 1}
