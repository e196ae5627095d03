"""Packets that were captured twice."""

from __future__ import annotations

import pytest

from tests.support.conversation import CLIENT, SERVER, Conversation


@pytest.mark.parametrize("numbered", [True, False])
def test_both_copies_of_every_packet_change_no_count(numbered: bool) -> None:
    talk = Conversation(numbered=numbered).opens()
    talk.client(b"request")
    talk.acks(SERVER)
    talk.server(b"response")
    talk.acks(CLIENT)
    talk.closes()
    honest = talk.wire().connection()
    talk.frames = [(at + later, frame) for at, frame in talk.frames for later in (0, 40_000)]
    wire = talk.wire()
    twice = wire.connection()
    assert (wire.octets(CLIENT), wire.octets(SERVER)) == (b"request", b"response")
    assert wire.kinds(CLIENT) == ["NEW", "CAPTURE_DUPLICATE"]
    for one, two in ((honest.sides.client, twice.sides.client), (honest.sides.server, twice.sides.server)):
        assert (two.retransmitted_segments, two.duplicate_acks, two.spurious_retransmissions) == (0, 0, 0)
        assert two.captured_twice == one.packets
    assert twice.syn_retries == 0
    assert twice.complete


def test_copies_that_arrive_after_the_next_packets() -> None:
    talk = Conversation().opens()
    for _ in range(6):
        talk.client(b"x" * 500)
    frames = talk.frames[3:]
    talk.frames += [(at + 5_000, frame) for at, frame in frames]
    talk.frames.sort(key=lambda frame: frame[0] // 3_000_000)
    assert set(talk.wire().kinds(CLIENT)) == {"NEW", "CAPTURE_DUPLICATE"}
