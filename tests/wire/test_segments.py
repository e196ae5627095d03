"""What each segment is to its stream, and when its octets became usable."""

from __future__ import annotations

import struct

import pytest

from tests.support.conversation import CLIENT, MS, SERVER, SYN_OPTIONS, Conversation
from tests.support.packets import ACK, FIN, PSH


def sack(talk: Conversation, side: int, *blocks: tuple[int, int]) -> bytes:
    """A SACK option of ``side`` about its peer's octets."""
    base = talk.isns[1 - side] + 1
    edges = b"".join(struct.pack(">II", base + low, base + high) for low, high in blocks)
    return b"\1\1" + bytes([5, 2 + len(edges)]) + edges


def test_in_order_octets_are_deliverable_when_seen() -> None:
    talk = Conversation().opens()
    for _ in range(4):
        talk.server(b"x" * 1000)
    wire = talk.wire()
    assert wire.kinds(SERVER) == ["NEW"] * 4
    assert wire.waits_ms(SERVER) == [0.0] * 4


def test_a_lost_segment_holds_up_what_follows_until_it_is_sent_again() -> None:
    talk = Conversation().opens(rtt_ms=20)
    lost = talk.server(b"a" * 100, captured=False)
    talk.after(1).server(b"b" * 100)
    talk.after(1).server(b"c" * 100)
    talk.after(250).again(lost)
    talk.after(1).server(b"d" * 100)
    wire = talk.wire()
    assert wire.kinds(SERVER) == ["NEW", "NEW", "RETRANSMISSION", "NEW"]
    assert wire.waits_ms(SERVER) == [251.0, 250.0, 0.0, 0.0]
    assert wire.octets(SERVER) == b"a" * 100 + b"b" * 100 + b"c" * 100 + b"d" * 100
    side = wire.connection().sides.server
    assert (side.retransmitted_segments, side.timeout_retransmissions) == (1, 1)
    assert side.loss_ns == 251 * MS
    assert side.missing_bytes == 0


def test_holes_open_at_the_same_time_are_counted_once() -> None:
    talk = Conversation(numbered=False).opens(rtt_ms=20)
    first = talk.server(b"a" * 100, captured=False)
    talk.after(1).server(b"b" * 100)
    second = talk.server(b"c" * 100, captured=False)
    talk.after(1).server(b"d" * 100)
    talk.after(98).again(first)
    talk.after(20).again(second)
    side = talk.wire().connection().sides.server
    assert side.loss_ns == 120 * MS


def test_reordering_is_not_loss() -> None:
    talk = Conversation(numbered=False).opens(rtt_ms=20)
    late = talk.server(b"a" * 100, captured=False)
    talk.after(1).server(b"b" * 100)
    talk.after(2).again(late)
    wire = talk.wire()
    assert wire.kinds(SERVER) == ["NEW", "OUT_OF_ORDER"]
    side = wire.connection().sides.server
    assert (side.out_of_order_segments, side.retransmitted_segments) == (1, 0)
    assert (side.loss_ns, side.reordering_ns) == (0, 2 * MS)


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


def test_a_duplicate_sack_proves_a_retransmission_spurious() -> None:
    talk = Conversation().opens(rtt_ms=20)
    sent = talk.client(b"request")
    talk.after(230).again(sent)
    talk.after(5).acks(SERVER, 7)
    talk.after(10).acks(SERVER, 7, options=sack(talk, SERVER, (0, 7)))
    assert talk.wire().kinds(CLIENT) == ["NEW", "SPURIOUS"]


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


def test_a_retransmission_that_repacketises_brings_only_its_new_octets() -> None:
    talk = Conversation().opens()
    talk.client(b"abc")
    talk.after(300).packet(CLIENT, b"abcdef", offset=0)
    wire = talk.wire()
    assert wire.kinds(CLIENT) == ["NEW", "RETRANSMISSION"]
    assert wire.octets(CLIENT) == b"abcdef"
    assert [chunk.offset for chunk in wire.chunks(CLIENT)] == [0, 3]


def test_one_retransmission_that_fills_two_holes_has_a_row_for_each() -> None:
    talk = Conversation().opens()
    talk.packet(CLIENT, b"bb", offset=2)
    talk.packet(CLIENT, b"dd", offset=6)
    talk.packet(CLIENT, b"ff", offset=10)
    talk.after(300).packet(CLIENT, b"aabbccddee", offset=0)
    wire = talk.wire()
    assert wire.octets(CLIENT) == b"aabbccddeeff"
    assert [(c.offset, c.data, c.first_packet) for c in wire.chunks(CLIENT)] == [
        (0, b"aa", 7),
        (2, b"bb", 4),
        (4, b"cc", 7),
        (6, b"dd", 5),
        (8, b"ee", 7),
        (10, b"ff", 6),
    ]
    assert wire.connection().sides.client.retransmitted_segments == 1


def test_the_first_copy_of_an_octet_wins() -> None:
    talk = Conversation().opens()
    talk.client(b"first")
    talk.after(300).packet(CLIENT, b"other", offset=0)
    assert talk.wire().octets(CLIENT) == b"first"


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


def test_octets_that_were_acknowledged_but_never_captured_hold_up_nothing() -> None:
    talk = Conversation().opens()
    talk.server(b"a" * 100)
    talk.server(b"b" * 300, captured=False)
    talk.server(b"c" * 100)
    talk.acks_everything(CLIENT)
    wire = talk.wire()
    assert wire.waits_ms(SERVER) == [0.0, 0.0]
    assert [(c.offset, c.missing_before) for c in wire.chunks(SERVER)] == [(0, 0), (400, 300)]
    side = wire.connection().sides.server
    assert (side.missing_bytes, side.loss_ns) == (300, 0)


def test_octets_after_a_hole_that_nobody_filled_are_never_deliverable() -> None:
    talk = Conversation().opens()
    talk.server(b"a" * 100)
    talk.server(b"b" * 300, captured=False)
    talk.server(b"c" * 100)
    talk.acks(CLIENT, 100)
    wire = talk.wire()
    assert wire.waits_ms(SERVER) == [0.0, None]
    assert wire.octets(SERVER) == b"a" * 100
    assert wire.connection().sides.server.missing_bytes == 0


def test_a_one_sided_capture_is_not_held_up_by_its_gaps() -> None:
    talk = Conversation()
    talk.server(b"a" * 100)
    talk.server(b"b" * 300, captured=False)
    talk.server(b"c" * 100)
    wire = talk.wire()
    assert [c.missing_before for c in wire.chunks(SERVER)] == [0, 300]


def test_a_clock_that_steps_back_makes_no_octet_wait() -> None:
    talk = Conversation().opens()
    talk.server(b"a" * 100)
    talk.after(-3_600_000).server(b"b" * 100)
    talk.server(b"c" * 100)
    assert talk.wire().waits_ms(SERVER) == [0.0, 0.0, 0.0]


def test_waiting_is_never_negative_when_clock_and_file_disagree() -> None:
    talk = Conversation().opens()
    lost = talk.server(b"a" * 100, captured=False)
    talk.server(b"b" * 100)
    talk.after(-50).again(lost)
    assert talk.wire().waits_ms(SERVER) == [0.0, 0.0]


def test_a_fin_and_its_retransmission() -> None:
    talk = Conversation().opens()
    talk.client(b"bye")
    fin = talk.say(CLIENT, b"", flags=FIN | ACK)
    talk.after(250).again(fin)
    side = talk.wire().connection().sides.client
    assert (side.retransmitted_segments, side.missing_bytes) == (1, 0)
    assert side.fin_packet == 5


def test_octets_beyond_the_snap_length_count_but_are_not_there() -> None:
    talk = Conversation().opens()
    talk.server(b"h" * 1000)
    talk.server(b"t" * 10)
    talk.acks(CLIENT)
    frames = [(at, frame[:154]) for at, frame in talk.frames]
    assert len(frames[3][1]) == 154
    wire = talk.wire()
    assert wire.connection().sides.server.payload_bytes == 1010


def test_data_in_a_syn_begins_the_stream() -> None:
    talk = Conversation()
    talk.packet(CLIENT, b"early", flags=2, options=SYN_OPTIONS)
    talk.packet(SERVER, flags=18, ack=5)
    talk.sent[CLIENT] = 5
    talk.packet(CLIENT)
    talk.client(b" and late")
    assert talk.wire().octets(CLIENT) == b"early and late"


def test_jumbo_super_segments_are_ranges_like_others() -> None:
    talk = Conversation().opens()
    big = talk.server(b"x" * 60_000, captured=False)
    talk.server(b"y" * 1000)
    for start in range(0, 60_000, 1460):
        talk.after(250 if not start else 0.01).packet(
            SERVER, big.data[start : start + 1460], offset=start, flags=ACK | PSH
        )
    wire = talk.wire()
    assert wire.octets(SERVER) == b"x" * 60_000 + b"y" * 1000
    assert "NEW" not in wire.kinds(SERVER)[1:]
