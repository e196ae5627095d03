"""A pair of endpoints that is used again."""

from __future__ import annotations

from tests.support.conversation import CLIENT, SERVER, Conversation, interleaved, wire_of
from tests.support.packets import ACK, RST, SYN


def test_a_new_initial_sequence_number_starts_a_connection() -> None:
    first = Conversation().opens().closes()
    again = Conversation(isns=(777_000, 888_000), at_ns=first.at_ns).opens()
    again.client(b"hello again")
    wire = interleaved(first, again)
    assert wire.flows.count == 2
    assert wire.octets(CLIENT, 1) == b"hello again"


def test_a_repeated_syn_is_no_new_connection() -> None:
    talk = Conversation()
    talk.packet(CLIENT, flags=SYN)
    talk.after(1000)
    talk.opens()
    wire = talk.wire()
    assert wire.flows.count == 1
    assert wire.connection().syn_retries == 1


def test_the_same_attempt_after_a_refusal_is_one_connection() -> None:
    talk = Conversation()
    for _ in range(3):
        talk.packet(CLIENT, flags=SYN)
        talk.packet(SERVER, flags=RST | ACK, offset=-1, ack=0)
    wire = talk.wire()
    assert wire.flows.count == 1
    assert wire.connection().syn_retries == 2
    assert wire.connection().close_reason == "refused"


def test_a_text_in_the_refusal_makes_no_connection_of_it() -> None:
    talk = Conversation()
    for _ in range(3):
        talk.packet(CLIENT, flags=SYN, offset=0)
        talk.packet(SERVER, b"no listener", flags=RST | ACK, offset=-1, ack=0)
    wire = talk.wire()
    assert wire.flows.count == 1
    assert wire.connection().syn_retries == 2


def test_the_same_attempt_after_a_syn_ack_that_was_reset_is_one_connection() -> None:
    """Something between the two answered for the client: the server's SYN-ACK and the client's SYN are both repeated."""
    talk = Conversation()
    for _ in range(2):
        talk.packet(CLIENT, flags=SYN)
        talk.packet(SERVER, flags=SYN | ACK)
        talk.packet(CLIENT, flags=RST, offset=20)
    talk.packet(SERVER, flags=RST)
    wire = talk.wire()
    assert wire.flows.count == 1
    assert wire.connection().syn_retries == 1


def test_the_same_octets_replayed_are_another_connection() -> None:
    first = Conversation().opens().closes()
    again = Conversation(at_ns=first.at_ns).opens().closes()
    assert interleaved(first, again).flows.count == 2


def test_a_syn_captured_after_what_it_opened_is_of_the_same_connection() -> None:
    talk = Conversation().opens()
    talk.client(b"hello")
    talk.closes()
    wire = wire_of([*talk.frames[1:], talk.frames[0]])
    assert wire.flows.count == 1
    assert wire.connection().syn_packet == len(talk.frames)


def test_a_syn_after_a_capture_that_began_in_the_middle_starts_a_connection() -> None:
    old = Conversation(isns=(1000, 2000))
    old.client(b"tail of the old one")
    new = Conversation(isns=(9_000_000, 8_000_000), at_ns=old.at_ns).opens()
    wire = interleaved(old, new)
    assert wire.flows.count == 2
    assert wire.flows.known_by(1) == "syn"


def test_syn_ack_captured_before_its_syn_is_one_connection() -> None:
    talk = Conversation().opens()
    (t0, syn), (t1, syn_ack), *rest = talk.frames
    wire = wire_of([(t0, syn_ack), (t1, syn), *rest])
    assert wire.flows.count == 1
    assert wire.flows.known_by(0) == "syn"
    assert str(wire.connection().client) == "10.0.0.1:40000"
