"""Why a packet from before the edge was sent, or captured, there."""

from __future__ import annotations

import struct

from tests.support.conversation import CLIENT, SERVER, Conversation
from tests.support.packets import ACK, FIN


def test_the_senders_packet_count_tells_a_quick_retransmission_from_reordering() -> None:
    talk = Conversation().opens(rtt_ms=20)
    for _ in range(4):
        talk.server(b".")
    lost = talk.server(b"a" * 100, captured=False)
    talk.after(1).server(b"b" * 100)
    talk.after(2).again(lost)
    assert talk.wire().kinds(SERVER)[-1] == "RETRANSMISSION"


def stretched(*, stamps: tuple[int, int] | None = None) -> Conversation:
    """A handshake of 60 ms on a path of 20, and a hole that is filled 30 ms after it opened; ``stamps`` of the packet after and in the hole."""

    def options(tick: int) -> bytes:
        return b"\x01\x01\x08\x0a" + struct.pack(">II", tick, 0)

    talk = Conversation(numbered=False).opens(rtt_ms=60)
    talk.client(b"request")
    talk.after(20).acks(SERVER)
    talk.server(b"0" * 100)
    talk.after(0).acks(CLIENT)
    after, filling = stamps or (0, 0)
    talk.packet(SERVER, b"2" * 100, offset=200, options=options(after) if stamps else b"")
    talk.after(30).packet(SERVER, b"1" * 100, offset=100, options=options(filling) if stamps else b"")
    return talk


def test_a_stretched_handshake_makes_no_reordering_of_a_retransmission() -> None:
    assert stretched().wire().kinds(SERVER)[-1] == "RETRANSMISSION"


def test_the_senders_clock_tells_a_retransmission_from_reordering() -> None:
    assert stretched(stamps=(100, 99)).wire().kinds(SERVER)[-1] == "OUT_OF_ORDER"
    assert stretched(stamps=(0xFFFFFFFF, 5)).wire().kinds(SERVER)[-1] == "RETRANSMISSION"
    assert stretched(stamps=(7, 7)).wire().kinds(SERVER)[-1] == "RETRANSMISSION"


def test_the_senders_packet_count_tells_slow_reordering() -> None:
    talk = Conversation().opens(rtt_ms=20)
    for _ in range(4):
        talk.server(b".")
    late = talk.server(b"a" * 100, captured=False)
    early_identification = talk._identification[SERVER]
    talk.after(1).server(b"b" * 100)
    talk.after(150).packet(SERVER, late.data, flags=late.flags, offset=late.offset, identification=early_identification)
    assert talk.wire().kinds(SERVER)[-1] == "OUT_OF_ORDER"


def test_octets_that_were_acknowledged_before_are_spurious() -> None:
    talk = Conversation().opens()
    sent = talk.client(b"request")
    talk.acks(SERVER)
    talk.after(300).again(sent)
    wire = talk.wire()
    assert wire.kinds(CLIENT) == ["NEW", "SPURIOUS"]
    assert wire.octets(CLIENT) == b"request"


def test_duplicate_acks_make_a_fast_retransmission() -> None:
    talk = Conversation().opens(rtt_ms=20)
    sent = [talk.client(b"%d" % i * 100) for i in range(5)]
    talk.after(20).acks(SERVER, 100)
    for _ in range(3):
        talk.after(0.1).acks(SERVER, 100)
    talk.after(0.1).again(sent[1])
    wire = talk.wire()
    assert wire.kinds(CLIENT) == ["NEW"] * 5 + ["FAST_RETRANSMISSION"]
    sides = wire.connection().sides
    assert sides.client.fast_retransmissions == 1
    assert sides.server.duplicate_acks == 3


def test_the_last_segment_again_while_earlier_ones_are_outstanding_is_a_tail_loss_probe() -> None:
    talk = Conversation().opens(rtt_ms=20)
    talk.client(b"a" * 100)
    last = talk.client(b"b" * 100)
    talk.after(60).again(last)
    wire = talk.wire()
    assert wire.kinds(CLIENT) == ["NEW", "NEW", "TAIL_LOSS_PROBE"]
    assert wire.connection().sides.client.tail_loss_probes == 1


def test_keep_alive_probes_bring_nothing() -> None:
    talk = Conversation().opens()
    talk.client(b"request")
    talk.acks(SERVER)
    talk.after(60_000).packet(CLIENT, b"\0", offset=6)
    talk.acks(SERVER)
    talk.after(60_000).packet(CLIENT, offset=6)
    talk.acks(SERVER)
    wire = talk.wire()
    assert wire.kinds(CLIENT) == ["NEW", "KEEP_ALIVE"]
    assert wire.octets(CLIENT) == b"request"
    sides = wire.connection().sides
    assert (sides.client.keep_alives, sides.client.retransmitted_segments) == (2, 0)
    assert sides.server.duplicate_acks == 0


def test_data_after_a_window_probe_is_new() -> None:
    talk = Conversation().opens()
    talk.server(b"a" * 100)
    talk.window[CLIENT] = 0
    talk.acks(CLIENT)
    talk.after(300).packet(SERVER, b"b", offset=100)
    talk.window[CLIENT] = 512
    talk.after(1).packet(CLIENT)
    talk.sent[SERVER] = 100
    talk.server(b"bcd")
    wire = talk.wire()
    assert wire.kinds(SERVER) == ["NEW", "NEW", "NEW"]
    assert wire.octets(SERVER) == b"a" * 100 + b"bcd"


def test_a_fin_and_its_retransmission() -> None:
    talk = Conversation().opens()
    talk.client(b"bye")
    fin = talk.say(CLIENT, b"", flags=FIN | ACK)
    talk.after(250).again(fin)
    side = talk.wire().connection().sides.client
    assert (side.retransmitted_segments, side.missing_bytes) == (1, 0)
    assert side.fin_packet == 5
