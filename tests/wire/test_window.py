"""Windows that are closed or filled."""

from __future__ import annotations

import pytest

from netdiag.wire.stalls import StallKind
from tests.support.conversation import CLIENT, MS, SERVER, SYN_OPTIONS, Conversation, filled_window
from tests.support.packets import ACK, SYN


@pytest.mark.parametrize("ends", [True, False])
def test_zero_window(ends: bool) -> None:
    talk = Conversation().opens()
    talk.server(b"x" * 1000)
    talk.window[CLIENT] = 0
    talk.acks(CLIENT)
    talk.after(200).packet(SERVER, offset=999)
    talk.after(0.2).acks(CLIENT)
    talk.window[CLIENT] = 512
    if ends:
        talk.after(300).acks(CLIENT)
    else:
        talk.after(300).packet(SERVER, offset=999)
    wire = talk.wire()
    side = wire.connection().sides.client
    assert side.zero_windows == 2
    assert side.zero_window_ns == int(500.2 * MS)
    stalls = wire.table.stalls
    assert stalls.kind.tolist() == [StallKind.ZERO_WINDOW]
    assert stalls.last_packet.tolist() == [8 if ends else -1]


def test_a_filled_window_counts_until_it_opens() -> None:
    wire = filled_window().wire()
    assert wire.connection().sides.server.window_full_ns == 40 * MS
    assert wire.connection().sides.client.zero_windows == 0


def test_windows_without_scaling_in_both_syns_are_not_scaled() -> None:
    talk = Conversation()
    talk.packet(CLIENT, flags=SYN, options=SYN_OPTIONS)
    talk.packet(SERVER, flags=SYN | ACK, options=b"\x02\x04\x05\xb4")
    talk.packet(CLIENT)
    talk.window[CLIENT] = 1280
    talk.acks(CLIENT)
    talk.server(b"x" * 1280)
    talk.after(40).acks(CLIENT)
    wire = talk.wire()
    assert wire.connection().sides.server.window_full_ns == 40 * MS
    assert wire.connection().sides.server.window_scale is None


def test_unknown_scaling_means_unknown_window() -> None:
    talk = Conversation()
    talk.window[CLIENT] = 10
    talk.acks(CLIENT)
    talk.server(b"x" * 10)
    talk.after(40).acks(CLIENT)
    assert talk.wire().connection().sides.server.window_full_ns == 0
