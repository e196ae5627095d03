"""Which end is the client."""

from __future__ import annotations

import pytest

from netdiag.wire.client_side import speaker
from tests.support.conversation import CLIENT, SERVER, Conversation
from tests.support.packets import ACK, SYN

MIDDLE = {
    "client-hello": (SERVER, b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"),
    "server-hello": (CLIENT, b"\x16\x03\x03\x00\x05\x02\x00\x00\x01\x00"),
    "http-request": (SERVER, b"POST /v1/messages HTTP/1.1\r\n"),
    "http-response": (CLIENT, b"HTTP/1.1 200 OK\r\n"),
}
"""Evidence: which end of the conversation says it (so roles are the reverse of what ports and order suggest), and what."""


@pytest.mark.parametrize("evidence", MIDDLE)
def test_without_handshake_the_first_octets_tell(evidence: str) -> None:
    side, said = MIDDLE[evidence]
    talk = Conversation()
    talk.packet(CLIENT)
    talk.say(side, said)
    wire = talk.wire()
    assert wire.connection().client_known_by == evidence
    assert str(wire.connection().client) == "10.0.0.2:443"


def test_a_request_later_in_the_capture_still_tells() -> None:
    talk = Conversation(client=("10.0.0.1", 80), server=("10.0.0.2", 9000))
    talk.server(b"...rest of a body")
    talk.client(b"GET /next HTTP/1.1\r\n")
    assert talk.wire().connection().client_known_by == "http-request"
    assert talk.wire().connection().client.port == 80


def test_with_nothing_else_the_lower_port_is_the_servers() -> None:
    talk = Conversation()
    talk.server(b"\0\1\2")
    record = talk.wire().connection()
    assert (record.client_known_by, record.server.port) == ("port", 443)


def test_with_equal_ports_the_first_sender_is_the_client() -> None:
    talk = Conversation(client=("10.0.0.1", 5000), server=("10.0.0.2", 5000))
    talk.server(b"\0\1\2")
    record = talk.wire().connection()
    assert (record.client_known_by, record.client.address) == ("first-packet", "10.0.0.2")


def test_a_syn_ack_alone_tells() -> None:
    talk = Conversation(client=("10.0.0.1", 80), server=("10.0.0.2", 9000))
    talk.packet(SERVER, flags=SYN | ACK)
    record = talk.wire().connection()
    assert (record.client_known_by, record.client.port) == ("syn-ack", 80)


def test_speaker_needs_whole_evidence() -> None:
    assert speaker(b"GET") is None
    assert speaker(b"\x16\x03\x01") is None
    assert speaker(b"\x80\x2e\x01\x00\x02") is not None
