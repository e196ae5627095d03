"""Frame padding that a middlebox counted into the IP length."""

from __future__ import annotations

from tests.support.conversation import CLIENT, SERVER, Conversation
from tests.support.packets import ACK, PSH


def padded(octets: bytes, *, flags: int = ACK, further: bool = True) -> Conversation:
    """The client's last acknowledgement of the handshake carries ``octets``; its request begins as if they did not exist."""
    talk = Conversation().opens()
    talk.packet(CLIENT, octets, flags=flags)
    if further:
        talk.client(b"GET / HTTP/1.1\r\n\r\n")
        talk.server(b"HTTP/1.1 204 No Content\r\n\r\n")
    return talk


def test_zero_octets_that_the_next_payload_does_not_count_are_no_payload() -> None:
    for size in (2, 6):
        wire = padded(bytes(size)).wire()
        assert wire.octets(CLIENT) == b"GET / HTTP/1.1\r\n\r\n"
        assert wire.connection().sides.client.retransmitted_segments == 0


def test_octets_that_are_counted_stay() -> None:
    talk = Conversation().opens()
    talk.say(CLIENT, bytes(6), flags=ACK)
    talk.client(b"GET / HTTP/1.1\r\n\r\n")
    assert talk.wire().octets(CLIENT) == bytes(6) + b"GET / HTTP/1.1\r\n\r\n"


def test_other_octets_other_sizes_and_pushed_segments_are_payload() -> None:
    for octets, flags in ((b"\0\1", ACK), (bytes(3), ACK), (bytes(6), ACK | PSH)):
        assert padded(octets, flags=flags).wire().octets(CLIENT)[: len(octets)] == octets


def test_without_a_later_payload_nothing_is_proved() -> None:
    assert padded(bytes(6), further=False).wire().octets(CLIENT) == bytes(6)


def test_one_proof_is_enough_for_the_whole_direction_and_no_other() -> None:
    talk = padded(bytes(6))
    talk.packet(CLIENT, bytes(6))
    talk.packet(SERVER, bytes(6))
    wire = talk.wire()
    assert wire.octets(CLIENT) == b"GET / HTTP/1.1\r\n\r\n"
    assert wire.octets(SERVER) == b"HTTP/1.1 204 No Content\r\n\r\n" + bytes(6)
