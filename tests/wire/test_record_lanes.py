"""Long streams, entered at many places at once."""

from __future__ import annotations

import random

import pytest

from netdiag.wire import record_lanes, record_steps
from tests.support.conversation import SERVER, Conversation
from tests.support.record_streams import HELLO, found, record, spread


@pytest.mark.parametrize("treacherous", [False, True])
@pytest.mark.parametrize("tail", [b"", b"\x17\x03", b"no record"])
def test_long_streams_are_entered_at_many_places(
    treacherous: bool, tail: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contents that look like records themselves lead the guesses astray; the result is that of the walk all the same."""
    monkeypatch.setattr(record_lanes, "LANE_BYTES", 3000)
    monkeypatch.setattr(record_steps, "MANY_STEPS", 2)
    chance = random.Random(3)
    lengths = [chance.randint(1, 1500) for _ in range(200)]
    if treacherous:
        fake = b"\x17\x03\x03\x00\x0b" + bytes(11)
        records = [bytes([23, 3, 3]) + n.to_bytes(2, "big") + (fake * 100)[:n] for n in lengths]
    else:
        records = [record(n, seed=i) for i, n in enumerate(lengths)]
    talk = Conversation().opens()
    spread(talk, SERVER, HELLO + b"".join(records) + tail, [1000, 333])
    wire = talk.wire()
    assert [length for _, _, length in found(wire, SERVER)] == [5, *lengths]
