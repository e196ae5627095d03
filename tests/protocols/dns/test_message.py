"""One DNS message: what is read of it, and what damage leaves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.dns.message import decode_message
from tests.support.dns_bytes import a, answer, message, name, pointer, record
from tests.support.http_bytes import mutate

OWNER = pointer(12)


def test_a_question() -> None:
    decoded = decode_message(message("WWW.example.com", "AAAA", id_=77))
    assert decoded is not None
    assert (decoded.id, decoded.name, decoded.type_name, decoded.response) == (77, "WWW.example.com", "AAAA", False)


def test_answers_with_aliases_and_compression() -> None:
    decoded = decode_message(
        answer(
            "www.example.com",
            record(OWNER, "CNAME", b"\4edge" + pointer(16), ttl=60),
            a(b"\4edge" + pointer(16), "192.0.2.1", ttl=20),
            a(b"\4edge" + pointer(16), "2001:db8::1", ttl=30),
        )
    )
    assert decoded is not None
    assert [(r.name, r.target or r.address) for r in decoded.answers] == [
        ("www.example.com", "edge.example.com"),
        ("edge.example.com", "192.0.2.1"),
        ("edge.example.com", "2001:db8::1"),
    ]
    assert not decoded.damaged


def test_the_extended_rcode_of_edns() -> None:
    opt = b"\0" + record(b"", "OPT", b"", ttl=1 << 24)
    decoded = decode_message(message("x.test", flags=0x8180, additionals=(opt,)))
    assert decoded is not None
    assert (decoded.rcode, decoded.rcode_name) == (16, "BADVERS")


@pytest.mark.parametrize(
    "owner",
    [
        pointer(12 + 18 + 4),  # to itself
        pointer(200),  # forward
        b"\x40abc\0",  # reserved label type
        b"\x3fab",  # label beyond the end
        b"\1a" * 200 + b"\0",  # longer than 255
    ],
)
def test_names_that_break_the_rules_leave_the_question(owner: bytes) -> None:
    decoded = decode_message(answer("long.example.com", record(owner, "A", b"\1\2\3\4")))
    assert decoded is not None
    assert decoded.name == "long.example.com"
    assert decoded.damaged


def test_damage_in_a_second_question_leaves_the_first() -> None:
    octets = bytearray(answer("www.example.com", a(pointer(12), "192.0.2.1")))
    octets[4:6] = b"\0\2"
    decoded = decode_message(bytes(octets[:33]) + b"\x3fcut")
    assert decoded is not None
    assert (decoded.name, decoded.type_name, decoded.response, decoded.damaged) == ("www.example.com", "A", True, True)


def test_pointers_are_followed_sixteen_times_at_most() -> None:
    def chain(hops: int) -> bytes:
        # A TXT record whose data are pointers, each to the one before; the last record's owner begins at the newest of them.
        start = 12 + len(name("a.test")) + 4 + len(name("t.test")) + 10
        pointers = [pointer(12), *(pointer(start + 2 * i) for i in range(hops - 1))]
        return answer(
            "a.test", record(name("t.test"), "TXT", b"".join(pointers)), a(pointer(start + 2 * (hops - 1)), "192.0.2.1")
        )

    short, long = decode_message(chain(14)), decode_message(chain(17))
    assert short is not None
    assert [r.name for r in short.answers] == ["t.test", "a.test"]
    assert long is not None
    assert long.damaged


def test_strange_labels_are_escaped() -> None:
    octets = message("x.test").replace(b"\1x\4test", b"\4\x1b[2J\3a.b")
    decoded = decode_message(octets)
    assert decoded is not None
    assert decoded.name == "\\027[2J.a\\046b"


@pytest.mark.parametrize(
    "octets", [b"", b"\0" * 11, b"\0" * 12, b"\xff" * 12, message("x.test")[:11], b"\x12\x34\1\x40\0\1\0\0\0\0\0\0\xc0"]
)
def test_what_is_no_message_is_none(octets: bytes) -> None:
    assert decode_message(octets) is None or decode_message(octets).questions == 0  # type: ignore[union-attr]


@given(st.integers(0, 1 << 30))
def test_mutated_messages_raise_nothing(seed: int) -> None:
    octets = answer(
        "www.example.com", record(OWNER, "CNAME", b"\4edge" + pointer(16)), a(b"\4edge" + pointer(16), "192.0.2.1")
    )
    decoded = decode_message(mutate(octets, seed))
    assert decoded is None or decoded.name.isprintable()


@given(st.binary(max_size=600))
def test_any_octets_are_a_message_or_none(octets: bytes) -> None:
    decoded = decode_message(octets)
    assert decoded is None or (decoded.name.isprintable() and 0 <= decoded.rcode < 1 << 12)
    assert decoded is None or len(decoded.answers) <= decoded.answer_count
