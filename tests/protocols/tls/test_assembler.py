"""Handshake messages taken out of records."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.tls.assembler import LARGEST_MESSAGE, Assembler, message_header
from tests.support.tls_peers import Settings, converse

HELLOS = [converse(Settings(alpn=(b"h2",))).client[0].fragment(), b"\x0e\0\0\0", b"\x0b\0\1\0" + bytes(256)]
"""A real ClientHello, an empty message and a larger one."""


@given(st.lists(st.integers(0, 2_000), max_size=12))
def test_messages_do_not_depend_on_where_records_cut_them(cuts: list[int]) -> None:
    stream = b"".join(HELLOS)
    edges = sorted({0, len(stream), *(cut % len(stream) for cut in cuts)})
    assembler = Assembler()
    found = []
    for start, end in pairwise(edges):
        found += list(assembler.feed(stream[start:end]))
    assert [message_header(kind, body) + body for kind, body in found] == HELLOS
    assert not assembler.partial


def test_a_message_remembers_the_record_it_began_in() -> None:
    assembler = Assembler()
    assert list(assembler.feed(HELLOS[0][:10], "first")) == []
    for _, _ in assembler.feed(HELLOS[0][10:] + HELLOS[1], "second"):
        break
    assert assembler.started == "first"


def test_a_hostile_length_stops_at_once() -> None:
    assembler = Assembler()
    assert list(assembler.feed(b"\x01\xff\xff\xff" + bytes(100))) == []
    assert assembler.damage == "handshake message of type 1 claims 16777215 octets"
    assert list(assembler.feed(HELLOS[0])) == []
    assembler.reset()
    assert len(list(assembler.feed(HELLOS[0]))) == 1


def test_the_largest_message_in_single_octets_takes_linear_time() -> None:
    assembler = Assembler()
    message = message_header(11, bytes(LARGEST_MESSAGE)) + bytes(LARGEST_MESSAGE)
    found = [m for at in range(len(message)) for m in assembler.feed(message[at : at + 1])]
    assert [(kind, len(body)) for kind, body in found] == [(11, LARGEST_MESSAGE)]
