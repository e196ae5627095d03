"""Grouping, incarnations, numbering, and who the client is."""

from __future__ import annotations

import pytest

from netdiag.wire.connections import track
from tests.support.conversation import CLIENT, SERVER, Conversation, interleaved, wire_of


def test_connections_are_numbered_by_their_first_packet() -> None:
    first = Conversation(client=("10.0.0.9", 50000), step_ms=3).opens()
    second = Conversation(client=("10.0.0.1", 40000), at_ns=first.frames[0][0] + 1, step_ms=3).opens()
    wire = interleaved(first, second)
    assert [str(wire.connection(i).client) for i in (0, 1)] == ["10.0.0.9:50000", "10.0.0.1:40000"]


def test_a_capture_merged_with_itself_has_each_packet_twice() -> None:
    talk = Conversation(numbered=True).opens()
    talk.client(b"hello")
    talk.closes()
    wire = wire_of([*talk.frames, *talk.frames])
    assert wire.flows.count == 1
    sides = wire.connection().sides
    assert (sides.client.captured_twice, sides.client.retransmitted_segments) == (3, 0)  # SYN, data and FIN


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
