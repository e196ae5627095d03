"""DNS over TCP: messages behind their length, wherever the segments end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.dns.over_tcp import tcp_messages
from netdiag.protocols.dns.pairing import pair
from netdiag.records.endpoint import Endpoint
from netdiag.wire.chunk import Chunk
from tests.support.dns_bytes import a, answer, message, pointer
from tests.support.http_bytes import MS, octet_by_octet, stream

CLIENT = Endpoint("192.0.2.10", 40000)
RESOLVER = Endpoint("192.0.2.53", 53)
ANSWER = answer("a.test", a(pointer(12), "192.0.2.1"), id_=1)


def framed(*messages: bytes) -> bytes:
    """Each behind its length (RFC 7766 section 8)."""
    return b"".join(len(m).to_bytes(2, "big") + m for m in messages)


def test_messages_are_cut_anywhere() -> None:
    asks = stream((0, framed(message("a.test", id_=1), message("b.test", id_=2))))
    answers = stream((7, framed(ANSWER)), (9, framed(answer("b.test", id_=2, rcode=3))))
    found = tcp_messages(octet_by_octet(asks), octet_by_octet(answers))
    rows = pair(m.between(CLIENT, RESOLVER) for m in found)
    assert [(r.name, r.transport, r.duration_ns, r.rcode, r.client, r.resolver) for r in rows] == [
        ("a.test", "tcp", 7 * MS, "NOERROR", CLIENT, RESOLVER),
        ("b.test", "tcp", 9 * MS, "NXDOMAIN", CLIENT, RESOLVER),
    ]


def test_both_directions_are_told_in_the_order_of_delivery() -> None:
    asks = stream((0, framed(message("a.test", id_=1))), (8, framed(message("c.test", id_=3))))
    found = tcp_messages(asks, stream((7, framed(ANSWER))))
    assert [(m.at // MS, m.message.name, m.message.response) for m in found] == [
        (0, "a.test", False),
        (7, "a.test", True),
        (8, "c.test", False),
    ]


def test_a_gap_ends_a_direction() -> None:
    octets = framed(message("a.test"))
    assert len(tcp_messages(stream((0, octets), (1, 5), (2, octets)), [])) == 1


def test_octets_that_are_no_message_end_a_direction() -> None:
    octets = framed(message("a.test"))
    assert tcp_messages(stream((0, b"\0\x05hello" + octets)), []) == []
    assert len(tcp_messages(stream((0, octets + b"\0\x05hello" + octets)), [])) == 1


def test_what_is_not_complete_is_not_told() -> None:
    octets = framed(message("a.test"))
    assert all(tcp_messages(stream((0, octets[:size])), []) == [] for size in range(1, len(octets)))


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_any_octets_raise_nothing_and_cuts_change_nothing(pieces: list[bytes]) -> None:
    chunks: list[Chunk] = stream(*((i, piece) for i, piece in enumerate(pieces) if piece))
    whole = [m.message for m in tcp_messages(chunks, [])]
    assert [m.message for m in tcp_messages(octet_by_octet(chunks), [])] == whole
