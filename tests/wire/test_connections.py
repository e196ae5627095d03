"""Grouping, incarnations, numbering, and who the client is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from netdiag.wire.client_side import speaker
from netdiag.wire.connections import track
from netdiag.wire.tables import NONE, Packets
from tests.support.conversation import CLIENT, SERVER, Conversation, Wire, wire_of
from tests.support.packets import ACK, RST, SYN


def interleaved(*talks: Conversation) -> Wire:
    """All conversations in one capture, by time."""
    return wire_of(sorted((frame for talk in talks for frame in talk.frames), key=lambda frame: frame[0]))


def test_connections_are_numbered_by_their_first_packet() -> None:
    first = Conversation(client=("10.0.0.9", 50000), step_ms=3).opens()
    second = Conversation(client=("10.0.0.1", 40000), at_ns=first.frames[0][0] + 1, step_ms=3).opens()
    wire = interleaved(first, second)
    assert [str(wire.connection(i).client) for i in (0, 1)] == ["10.0.0.9:50000", "10.0.0.1:40000"]


def test_rows_of_a_direction_are_contiguous_and_in_file_order() -> None:
    talks = [Conversation(client=("10.0.0.1", 40000 + i), step_ms=0.7 + i / 10).opens() for i in range(5)]
    for talk in talks:
        for _ in range(6):
            talk.client(b"a")
            talk.server(b"b")
    flows = interleaved(*talks).flows
    assert len(flows.starts) == 2 * flows.count + 1
    for connection in range(flows.count):
        for side in (CLIENT, SERVER):
            rows = flows.rows(connection, side)
            assert set(flows.connection[rows].tolist()) == {connection}
            assert set(flows.side[rows].tolist()) == {side}
            assert (np.diff(flows.packets.number[rows]) > 0).all()


def test_peer_row_is_the_other_sides_last_packet_before() -> None:
    talk = Conversation().opens()
    talk.client(b"question")
    talk.server(b"answer")
    talk.client(b"more")
    flows = talk.wire().flows
    number = flows.packets.number
    for row, peer in enumerate(flows.peer_row.tolist()):
        earlier = number[(flows.side != flows.side[row]) & (number < number[row])]
        assert (NONE if peer == NONE else number[peer]) == (earlier.max() if earlier.size else NONE)


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


def test_a_capture_merged_with_itself_has_each_packet_twice() -> None:
    talk = Conversation(numbered=True).opens()
    talk.client(b"hello")
    talk.closes()
    wire = wire_of([*talk.frames, *talk.frames])
    assert wire.flows.count == 1
    sides = wire.connection().sides
    assert (sides.client.captured_twice, sides.client.retransmitted_segments) == (3, 0)  # SYN, data and FIN


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


def test_ipv6_and_reused_pairs() -> None:
    ends = {"client": ("2001:db8::1", 40000), "server": ("2001:db8::2", 443)}
    first = Conversation(**ends).opens().closes()
    again = Conversation(**ends, isns=(4_000_000, 5_000_000), at_ns=first.at_ns).opens()
    wire = interleaved(first, again)
    assert wire.flows.count == 2
    assert str(wire.connection(1).server) == "[2001:db8::2]:443"


def test_both_directions_of_loopback_with_one_address() -> None:
    talk = Conversation(client=("127.0.0.1", 55555), server=("127.0.0.1", 443)).opens()
    talk.client(b"ping")
    talk.server(b"pong")
    wire = talk.wire()
    assert (wire.octets(CLIENT), wire.octets(SERVER)) == (b"ping", b"pong")
    assert (wire.connection().client.port, wire.connection().server.port) == (55555, 443)


def collide(packets: Packets) -> Packets:
    """The same packets with one and the same hashed key for every pair of endpoints."""
    same = np.full(len(packets), 1 << 63, np.uint64)
    return replace(packets, low=same, high=same + np.uint64(1))


def test_colliding_hashes_are_told_apart_by_the_addresses() -> None:
    one = Conversation(client=("2001:db8::1", 40000), server=("2001:db8::2", 443)).opens()
    two = Conversation(client=("2001:db8::3", 40000), server=("2001:db8::2", 443), isns=(50, 60)).opens()
    one.client(b"one")
    two.client(b"two")
    honest = interleaved(one, two)
    wire = Wire(collide(honest.packets), honest.buffer)
    assert wire.flows.count == 2
    assert {wire.octets(CLIENT, 0), wire.octets(CLIENT, 1)} == {b"one", b"two"}


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


def test_no_packets_no_connections() -> None:
    wire = Conversation().opens().wire()
    flows = track(wire.packets.take(slice(0, 0)), wire.buffer)
    assert flows.count == 0
    assert len(flows.packets) == 0


def in_fragments(frame: bytes, first_bytes: int) -> list[bytes]:
    """An IPv4 packet in an Ethernet frame as two fragments."""
    network, data = frame[14:34], frame[34:]
    out = []
    for piece, at, more in ((data[:first_bytes], 0, 0x2000), (data[first_bytes:], first_bytes, 0)):
        total, place = (20 + len(piece)).to_bytes(2, "big"), (more | at // 8).to_bytes(2, "big")
        out.append(frame[:14] + network[:2] + total + network[4:6] + place + network[8:] + piece)
    return out


@pytest.mark.parametrize("reverse", [False, True])
def test_fragments_in_any_order_belong_to_their_connection(reverse: bool) -> None:
    talk = Conversation()
    talk.client(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
    ((at, frame),) = talk.frames
    pieces = in_fragments(frame, 32)
    wire = wire_of([(at + i, piece) for i, piece in enumerate(pieces[::-1] if reverse else pieces)])
    record = wire.connection()
    assert (str(record.client), str(record.server)) == ("10.0.0.1:40000", "10.0.0.2:443")
    assert wire.octets(CLIENT) == b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"
    assert wire.flows.count == 1
