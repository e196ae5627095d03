"""The three packets that open a connection."""

from __future__ import annotations

from tests.support.conversation import CLIENT, MS, SERVER, SYN_OPTIONS, Conversation
from tests.support.packets import ACK, FIN, RST, SYN


def test_the_answered_syn_gives_the_round_trip() -> None:
    talk = Conversation()
    talk.packet(CLIENT, flags=SYN, options=SYN_OPTIONS)
    talk.after(1000)
    talk.opens(rtt_ms=25)
    record = talk.wire().connection()
    assert record.syn_retries == 1
    assert record.handshake_rtt_ns == 25 * MS
    assert record.syn_packet == 1
    assert record.sides.client.retransmitted_segments == 1


def rewritten(*, answered: bool) -> Conversation:
    """A handshake whose last packet acknowledges another number than the SYN-ACK's, as behind a firewall that rewrites one direction."""
    talk = Conversation()
    talk.packet(CLIENT, flags=SYN)
    talk.packet(SERVER, flags=SYN | ACK, ack=1)
    talk.packet(CLIENT, offset=1, ack=-40_000)
    talk.packet(CLIENT, b"request", offset=1, ack=-40_000)
    if answered:
        talk.packet(SERVER, b"response", offset=1, ack=8)
    return talk


def test_the_first_ack_completes_the_handshake_whatever_its_number_when_the_server_went_on() -> None:
    assert rewritten(answered=True).wire().connection().ack_packet == 3
    assert rewritten(answered=False).wire().connection().ack_packet is None


def test_a_syn_with_other_flags_is_a_syn_unless_it_resets() -> None:
    talk = Conversation()
    talk.packet(CLIENT, flags=SYN | RST)
    talk.packet(CLIENT, flags=SYN | FIN)
    assert talk.wire().connection().syn_packet == 2


def test_a_connection_that_the_capture_joined_late_has_no_handshake() -> None:
    talk = Conversation()
    talk.client(b"GET / HTTP/1.1\r\n")
    talk.after(40).server(b"HTTP/1.1 200 OK\r\n")
    record = talk.wire().connection()
    assert (record.syn_at, record.syn_ack_at, record.ack_at, record.handshake_rtt_ns) == (None, None, None, None)
    assert record.sides.client.mss_bytes is None
    assert record.sides.client.sack is None
    assert record.complete is False
