"""Queries with their answers."""

from __future__ import annotations

import pytest

from netdiag.protocols.dns.message import decode_message
from netdiag.protocols.dns.pairing import pair
from netdiag.protocols.dns.timed import TimedMessage
from netdiag.records.dns import NameResolution
from netdiag.records.endpoint import Endpoint
from tests.support.dns_bytes import a, answer, message, name, pointer, record
from tests.support.http_bytes import MS

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
