"""Round-trip times as the capture point saw them."""

from __future__ import annotations

from tests.support.conversation import CLIENT, MS, SERVER, Conversation


def test_karn_a_retransmitted_range_gives_no_sample() -> None:
    talk = Conversation().opens(rtt_ms=20)
    request = talk.client(b"request")
    talk.after(230).again(request)
    talk.after(3).acks(SERVER)
    assert talk.wire().connection().server_rtt_ns == 20 * MS


def test_an_acknowledgement_that_waited_for_the_application_gives_no_sample() -> None:
    talk = Conversation()
    talk.client(b"GET / HTTP/1.1\r\n")
    talk.after(300).server(b"HTTP/1.1 200 OK\r\n")
    assert talk.wire().connection().server_rtt_ns is None


def test_prompt_acknowledgements_give_samples_without_handshake() -> None:
    talk = Conversation()
    talk.client(b"GET / HTTP/1.1\r\n")
    talk.after(33).acks(SERVER)
    assert talk.wire().connection().min_rtt_ns == 33 * MS


def test_times_of_an_ack_before_its_data_give_no_negative_sample() -> None:
    talk = Conversation().opens(rtt_ms=20)
    talk.server(b"x" * 100, captured=False)
    talk.acks_everything(CLIENT)
    talk.after(0.01).packet(SERVER, b"x" * 100, offset=0)
    record = talk.wire().connection()
    assert record.client_rtt_ns == 50_000
    assert record.sides.server.missing_bytes == 0
