"""DNS messages, and queries with their answers."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols import dns
from netdiag.protocols.dns import TimedMessage, decode_message, pair
from netdiag.records.dns import NameResolution
from netdiag.records.endpoint import Endpoint
from tests.support.dns_bytes import a, answer, message, name, pointer, record
from tests.support.http_bytes import MS, mutate, octet_by_octet, stream

CLIENT = Endpoint("192.0.2.10", 40000)
RESOLVER = Endpoint("192.0.2.53", 53)
OWNER = pointer(12)


def timed(at_ms: float, octets: bytes, *, client: Endpoint = CLIENT, resolver: Endpoint = RESOLVER) -> TimedMessage:
    decoded = decode_message(octets)
    assert decoded is not None
    source, destination = (resolver, client) if decoded.response else (client, resolver)
    return TimedMessage(decoded, source, destination, int(at_ms * MS), int(at_ms) + 1)


def resolve(*messages: TimedMessage) -> list[NameResolution]:
    return pair(messages)


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


def test_one_question_and_its_answer() -> None:
    (row,) = resolve(
        timed(5, message("api.test")),
        timed(
            17,
            answer(
                "api.test",
                record(OWNER, "CNAME", name("edge.test")),
                a(name("edge.test"), "192.0.2.1", ttl=30),
                a(name("edge.test"), "192.0.2.2"),
            ),
        ),
    )
    assert (row.name, row.type, row.rcode, row.addresses) == ("api.test", "A", "NOERROR", ("192.0.2.1", "192.0.2.2"))
    assert (row.query_at, row.response_at, row.duration_ns) == (5 * MS, 17 * MS, 12 * MS)
    assert (row.query_packet, row.response_packet, row.attempts) == (6, 18, 1)
    assert (row.cname_chain, row.ttl_s) == (("edge.test",), 30)
    assert (row.client, row.resolver) == (CLIENT, RESOLVER)


def test_a_repeated_question_is_another_attempt() -> None:
    (row,) = resolve(
        timed(0, message("api.test")),
        timed(5000, message("api.test")),
        timed(5020, answer("api.test", a(OWNER, "192.0.2.1"))),
    )
    assert (row.attempts, row.query_at, row.duration_ns) == (2, 0, 5020 * MS)


def test_a_question_without_answer() -> None:
    (row,) = resolve(timed(0, message("api.test")), timed(5000, message("api.test")))
    assert (row.attempts, row.response_at, row.rcode, row.duration_ns) == (2, None, None, None)


def test_an_answer_that_repeats_no_question_belongs_to_its_transaction() -> None:
    refused = b"\x12\x34\x81\x85" + bytes(8)
    (row,) = resolve(timed(0, message("api.test", id_=0x1234)), timed(4, refused))
    assert (row.name, row.rcode, row.duration_ns, row.answered_question) == ("api.test", "REFUSED", 4 * MS, None)


def test_an_answer_to_another_question_is_told_and_not_believed() -> None:
    (row,) = resolve(
        timed(0, message("api.test")),
        timed(1, message("api.test")),
        timed(4, answer("other.test", a(OWNER, "203.0.113.66"))),
    )
    assert (row.name, row.duration_ns, row.attempts) == ("api.test", 4 * MS, 2)
    assert (row.answered_question, row.addresses) == ("other.test A", ())


@pytest.mark.parametrize(
    ("query_bytes", "answer_bytes", "name"), [(26, 26, ""), (26, 999, "api.example.com"), (999, 26, "api.example.com")]
)
def test_questions_that_the_snap_length_cut_are_paired_by_id(query_bytes: int, answer_bytes: int, name: str) -> None:
    """The 68 octets that tcpdump once kept leave 26 of a DNS message."""
    whole = answer("api.example.com", a(OWNER, "192.0.2.1"))
    (row,) = resolve(timed(0, message("api.example.com")[:query_bytes]), timed(7, whole[:answer_bytes]))
    assert (row.name, row.duration_ns, row.rcode, row.answered_question) == (name, 7 * MS, "NOERROR", None)
    assert row.addresses == (("192.0.2.1",) if answer_bytes == 999 else ())


def test_an_answer_finds_its_own_question_among_those_of_one_id() -> None:
    rows = resolve(
        timed(0, message("api.test")),
        timed(1, message("web.test")),
        timed(4, answer("web.test", a(OWNER, "192.0.2.2"))),
        timed(5, answer("api.test", a(OWNER, "192.0.2.1"))),
        timed(6, answer("none.test", a(OWNER, "192.0.2.3"))),
    )
    found = [(r.name, r.addresses, r.answered_question, r.query_at is None) for r in rows]
    assert found == [
        ("api.test", ("192.0.2.1",), None, False),
        ("web.test", ("192.0.2.2",), None, False),
        ("none.test", ("192.0.2.3",), None, True),
    ]


def test_no_duration_where_the_clock_stepped_back() -> None:
    (row,) = resolve(timed(900, message("api.test")), timed(4, answer("api.test", a(OWNER, "192.0.2.1"))))
    assert (row.query_at, row.response_at, row.duration_ns) == (900 * MS, 4 * MS, None)


def test_an_answer_without_question() -> None:
    (row,) = resolve(timed(10, answer("api.test", a(OWNER, "192.0.2.1"))))
    assert (row.query_at, row.duration_ns, row.attempts, row.response_at) == (None, None, 1, 10 * MS)


def test_two_families_are_two_resolutions_and_a_search_list_shows() -> None:
    rows = resolve(
        timed(0, message("api.test.corp", id_=1)),
        timed(0, message("api.test.corp", "AAAA", id_=2)),
        timed(9, answer("api.test.corp", id_=1, rcode=3)),
        timed(9, answer("api.test.corp", id_=2, type_="AAAA", rcode=3)),
        timed(10, message("api.test", id_=3)),
        timed(10, message("api.test", "AAAA", id_=4)),
        timed(20, answer("api.test", a(OWNER, "2001:db8::1"), type_="AAAA", id_=4)),
        timed(21, answer("api.test", a(OWNER, "192.0.2.1"), id_=3)),
    )
    assert [(r.name, r.type, r.rcode) for r in rows] == [
        ("api.test.corp", "A", "NXDOMAIN"),
        ("api.test.corp", "AAAA", "NXDOMAIN"),
        ("api.test", "A", "NOERROR"),
        ("api.test", "AAAA", "NOERROR"),
    ]


def test_the_first_of_two_answers_counts_and_case_does_not() -> None:
    (row,) = resolve(
        timed(0, message("aPi.TesT")),
        timed(5, answer("api.test", a(OWNER, "203.0.113.66"))),
        timed(30, answer("api.test", a(OWNER, "192.0.2.1"))),
    )
    assert (row.name, row.addresses, row.response_at) == ("aPi.TesT", ("203.0.113.66",), 5 * MS)


def test_the_same_id_later_is_another_resolution() -> None:
    rows = resolve(
        timed(0, message("api.test")),
        timed(5, answer("api.test", a(OWNER, "192.0.2.1"))),
        timed(900, message("api.test")),
        timed(905, answer("api.test", a(OWNER, "192.0.2.1"))),
    )
    assert [r.query_at for r in rows] == [0, 900 * MS]


def test_a_truncated_answer_says_so() -> None:
    (row,) = resolve(timed(0, message("big.test")), timed(3, answer("big.test", truncated=True)))
    assert row.truncated


def test_multicast_names_are_left_out() -> None:
    for port in (5353, 5355):
        assert resolve(timed(0, message("printer.local"), resolver=Endpoint("224.0.0.251", port))) == []


def test_a_client_may_ask_an_ordinary_resolver_from_the_multicast_port() -> None:
    assert len(resolve(timed(0, message("api.test"), client=Endpoint("192.0.2.10", 5353)))) == 1


def test_circular_aliases_end() -> None:
    (row,) = resolve(
        timed(0, message("a.test")),
        timed(
            5, answer("a.test", record(OWNER, "CNAME", name("b.test")), record(name("b.test"), "CNAME", name("a.test")))
        ),
    )
    assert row.cname_chain == ("b.test", "a.test")
    assert row.addresses == ()


def test_messages_over_tcp_are_cut_anywhere() -> None:
    def framed(*messages: bytes) -> bytes:
        return b"".join(len(m).to_bytes(2, "big") + m for m in messages)

    asks = stream((0, framed(message("a.test", id_=1), message("b.test", id_=2))))
    answers = stream(
        (7, framed(answer("a.test", a(OWNER, "192.0.2.1"), id_=1))), (9, framed(answer("b.test", id_=2, rcode=3)))
    )
    rows = pair(_over_tcp(octet_by_octet(asks), octet_by_octet(answers)))
    assert [(r.name, r.transport, r.duration_ns, r.rcode) for r in rows] == [
        ("a.test", "tcp", 7 * MS, "NOERROR"),
        ("b.test", "tcp", 9 * MS, "NXDOMAIN"),
    ]
    unnamed = dns.tcp_messages(asks, answers)
    assert [m.between(CLIENT, RESOLVER) for m in unnamed] == _over_tcp(asks, answers)


def _over_tcp(client: Iterable[object], server: Iterable[object]) -> list[TimedMessage]:
    return dns.tcp_messages(client, server, client_endpoint=CLIENT, resolver=RESOLVER)  # type: ignore[arg-type]


def test_over_tcp_a_gap_or_nonsense_ends_a_direction() -> None:
    octets = message("a.test")
    framed = len(octets).to_bytes(2, "big") + octets
    assert len(dns.tcp_messages(stream((0, framed), (1, 5), (2, framed)), [])) == 1
    assert dns.tcp_messages(stream((0, b"\0\x05hello" + framed)), []) == []
