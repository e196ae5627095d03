"""What each segment is to its stream, and when its octets became usable."""

from __future__ import annotations

from tests.support.conversation import CLIENT, MS, SERVER, SYN_OPTIONS, Conversation
from tests.support.packets import ACK, PSH


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
