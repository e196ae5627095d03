"""Time lost to holes, and octets that the capture lost."""

from __future__ import annotations

from netdiag.wire.stalls import StallKind
from tests.support.conversation import CLIENT, MS, SERVER, Conversation


def test_octets_lost_by_the_capture_at_the_end_of_a_direction() -> None:
    talk = Conversation().opens()
    talk.server(b"x" * 100)
    talk.server(b"y" * 50, captured=False)
    talk.acks_everything(CLIENT)
    record = talk.wire().connection()
    assert record.sides.server.missing_bytes == 50


def test_a_fin_that_was_not_captured_is_no_missing_octet() -> None:
    talk = Conversation().opens()
    talk.server(b"x" * 100)
    talk.say(SERVER, b"", flags=17, captured=False)
    talk.acks_everything(CLIENT)
    assert talk.wire().connection().sides.server.missing_bytes == 0


def test_a_capture_of_one_direction_counts_the_other_as_missing() -> None:
    talk = Conversation()
    talk.client(b"GET / HTTP/1.1\r\n")
    talk.server(b"x" * 5000, captured=False)
    talk.acks_everything(CLIENT)
    record = talk.wire().connection()
    assert record.sides.server.packets == 0
    assert record.sides.server.missing_bytes == 5000


def test_octets_lost_beyond_the_capture_point_are_counted_from_their_first_transmission() -> None:
    talk = Conversation().opens(rtt_ms=20)
    talk.client(b"a" * 1000)
    request = talk.client(b"b" * 1000)
    talk.client(b"c" * 1000)
    talk.after(250).again(request)
    talk.after(20).acks(SERVER)
    wire = talk.wire()
    client = wire.connection().sides.client
    assert (client.loss_beyond_ns, client.loss_ns) == (251 * MS, 0)
    chosen = wire.table.stalls.kind == StallKind.LOSS_BEYOND
    assert wire.table.stalls.first_packet[chosen].tolist() == [5]
    assert wire.table.stalls.last_packet[chosen].tolist() == [7]


def test_needless_retransmissions_cost_nothing() -> None:
    talk = Conversation().opens(rtt_ms=20)
    request = talk.client(b"a" * 1000)
    talk.after(20).acks(SERVER)
    talk.after(250).again(request)
    assert talk.wire().connection().sides.client.loss_beyond_ns == 0
