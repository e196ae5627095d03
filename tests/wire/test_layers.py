"""The loop that takes packets through their layers."""

from __future__ import annotations

from netdiag.wire.decode import decode
from tests.support.encapsulations import FOUR
from tests.support.packets import (
    ethernet,
    timed,
    window_of,
)


def test_endless_nesting_ends() -> None:
    frame = ethernet(b"".join(b"\0\x05\x81\0" for _ in range(200)) + FOUR, ethertype=0x8100)
    decoded = decode(window_of(timed([frame])))
    assert decoded.not_decoded == {"nested too deep": 1}
