"""Which lookup did a connection wait for?"""

from __future__ import annotations

import dataclasses

from netdiag.analysis.pairing import Dial, Lookup, pair
from netdiag.records.dns import NameResolution
from netdiag.records.endpoint import Endpoint

MS = 1_000_000
RESOLVER = Endpoint("10.0.0.53", 53)


def asked(
    name: str,
    at_ms: float,
    answered_ms: float | None,
    *addresses: str,
    type: str = "A",
    rcode: str = "NOERROR",
    client: str = "10.0.0.1",
) -> NameResolution:
    return NameResolution(
        name=name,
        type=type,
        resolver=RESOLVER,
        client=Endpoint(client, 40000),
        transport="udp",
        query_at=int(at_ms * MS),
        query_packet=int(at_ms) + 1,
        response_at=None if answered_ms is None else int(answered_ms * MS),
        response_packet=None if answered_ms is None else int(answered_ms) + 1,
        duration_ns=None if answered_ms is None else int((answered_ms - at_ms) * MS),
        rcode=None if answered_ms is None else rcode,
        addresses=addresses,
    )


def dial(
    id: int,
    server: str,
    syn_ms: float,
    *names: str,
    failed_ms: float | None = None,
    client: str = "10.0.0.1",
    established_ms: float | None = None,
) -> Dial:
    return Dial(
        connection_id=id,
        client=client,
        server=server,
        syn_at=int(syn_ms * MS),
        names=frozenset(names),
        failed_at=None if failed_ms is None else int(failed_ms * MS),
        established_at=None if established_ms is None else int(established_ms * MS),
    )


def span_ms(lookup: Lookup) -> tuple[float, float]:
    return lookup.query.at / MS, lookup.answer.at / MS


def test_from_the_first_query_of_any_type_to_the_last_answer_before_the_syn() -> None:
    resolutions = [
        asked("llm.example", 0, 20, "192.0.2.1"),
        asked("llm.example", 1, 50, "2001:db8::1", type="AAAA"),
        asked("llm.example", 1, 90, type="HTTPS"),
    ]
    found = pair(resolutions, [dial(7, "192.0.2.1", 60)])
    assert span_ms(found[7]) == (0, 50)
    assert set(found[7].resolutions) == {0, 1, 2}


def test_a_lookup_whose_times_go_back_is_nobodys() -> None:
    later = dataclasses.replace(asked("a.example", 900, None), response_at=10 * MS, addresses=("192.0.2.1",))
    assert pair([later], [dial(0, "192.0.2.1", 12)]) == {}
    other = asked("a.example", 1, 11, type="AAAA")
    assert pair([later, other], [dial(0, "192.0.2.1", 12)])[0].query.at == 1 * MS


def test_six_connections_at_once_all_waited() -> None:
    found = pair([asked("a.example", 0, 10, "192.0.2.1")], [dial(i, "192.0.2.1", 11 + i) for i in range(6)])
    assert sorted(found) == [0, 1, 2, 3, 4, 5]


def test_a_connection_opened_later_by_the_same_client_is_not_charged_for_the_lookup_of_the_first() -> None:
    found = pair(
        [asked("a.example", 0, 10, "192.0.2.1")],
        [dial(0, "192.0.2.1", 10.2), dial(1, "192.0.2.1", 14), dial(2, "192.0.2.1", 600)],
    )
    assert set(found) == {0, 1}


def test_a_race_of_addresses_waited_for_one_lookup() -> None:
    """The second attempt begins while the first is still open; once that is established, whoever comes had the address already."""
    slow = dataclasses.replace(dial(0, "2001:db8::1", 10.2), established_at=400 * MS)
    answers = [asked("a.example", 0, 10, "192.0.2.1"), asked("a.example", 0, 9, "2001:db8::1", type="AAAA")]
    assert set(pair(answers, [slow, dial(1, "192.0.2.1", 260)])) == {0, 1}
    quick = dataclasses.replace(slow, established_at=30 * MS)
    assert set(pair(answers, [quick, dial(1, "192.0.2.1", 260)])) == {0}


def test_a_later_connection_used_the_cache() -> None:
    resolutions = [asked("a.example", 0, 10, "192.0.2.1")]
    assert sorted(pair(resolutions, [dial(0, "192.0.2.1", 11), dial(1, "192.0.2.1", 9_000)])) == [0]
    assert pair(resolutions, [dial(1, "192.0.2.1", 9_000)]) == {}


def test_the_answer_must_come_before_the_syn() -> None:
    assert pair([asked("a.example", 0, 10, "192.0.2.1")], [dial(0, "192.0.2.1", 9)]) == {}


def test_search_list_misses_belong_to_the_lookup() -> None:
    resolutions = [
        asked("llm.example.corp.lan", 0, 20, rcode="NXDOMAIN"),
        asked("llm.example.lan", 21, 40, rcode="NXDOMAIN"),
        asked("llm.example", 41, 60, "192.0.2.1"),
    ]
    found = pair(resolutions, [dial(0, "192.0.2.1", 61, "llm.example")])
    assert span_ms(found[0]) == (0, 60)


def test_a_search_list_hit_is_found_under_the_short_name() -> None:
    resolutions = [asked("api", 0, 5, rcode="NXDOMAIN"), asked("api.corp.lan", 6, 9, "10.9.9.9")]
    assert span_ms(pair(resolutions, [dial(0, "10.9.9.9", 10, "api")])[0])[1] == 9


def test_one_address_many_names_the_server_name_decides() -> None:
    resolutions = [asked("one.example", 0, 10, "192.0.2.1"), asked("two.example", 2, 30, "192.0.2.1")]
    found = pair(resolutions, [dial(0, "192.0.2.1", 31, "one.example"), dial(1, "192.0.2.1", 32, "two.example")])
    assert (found[0].name, found[1].name) == ("one.example", "two.example")
    assert pair(resolutions, [dial(0, "192.0.2.1", 31, "three.example")]) == {}


def test_a_retry_after_silence_is_one_lookup() -> None:
    resolutions = [asked("a.example", 0, None), asked("a.example", 5_000, 5_020, "192.0.2.1")]
    assert span_ms(pair(resolutions, [dial(0, "192.0.2.1", 5_021)])[0]) == (0, 5_020)


def test_the_client_waits_for_a_query_that_is_never_answered() -> None:
    resolutions = [asked("a.example", 0, 20, "192.0.2.1"), asked("a.example", 0, None, type="AAAA")]
    assert span_ms(pair(resolutions, [dial(0, "192.0.2.1", 4_000)])[0]) == (0, 20)


def test_the_second_address_after_the_first_failed() -> None:
    resolutions = [asked("a.example", 0, 10, "192.0.2.1", "192.0.2.2")]
    found = pair(resolutions, [dial(0, "192.0.2.1", 11, failed_ms=20_000), dial(1, "192.0.2.2", 20_100)])
    assert span_ms(found[1]) == (0, 10)


def test_clients_are_kept_apart() -> None:
    resolutions = [asked("a.example", 0, 10, "192.0.2.1", client="10.0.0.2")]
    assert pair(resolutions, [dial(0, "192.0.2.1", 11)]) == {}


def test_asked_over_ipv4_and_connected_over_ipv6() -> None:
    resolutions = [asked("a.example", 0, 10, "2001:db8::1", type="AAAA", client="10.0.0.1")]
    own = "2001:db8::99"
    assert sorted(pair(resolutions, [dial(0, "2001:db8::1", 11, "a.example", client=own)])) == [0]
    assert pair(resolutions, [dial(0, "2001:db8::1", 11, client=own)]) == {}  # nothing says that it is the same host


def test_a_stub_resolver_on_the_loopback_address() -> None:
    resolutions = [asked("a.example", 0, 10, "192.0.2.1", client="127.0.0.1")]
    assert sorted(pair(resolutions, [dial(0, "192.0.2.1", 11)])) == [0]


def test_an_answer_without_its_query_leads_nowhere() -> None:
    lone = asked("a.example", 0, 10, "192.0.2.1")
    lone = dataclasses.replace(lone, query_at=None, query_packet=None, duration_ns=None)
    assert pair([lone], [dial(0, "192.0.2.1", 11)]) == {}


def test_a_name_asked_again_after_its_answer_is_a_lookup_of_its_own() -> None:
    """A client without a cache resolves for every connection, however soon they follow each other."""
    resolutions = [
        asked("llm.lab", 0, 50, "192.0.2.1"),
        asked("llm.lab", 0, 20, type="AAAA"),
        asked("llm.lab", 300, 350, "192.0.2.1"),
        asked("llm.lab", 300, 320, type="AAAA"),
    ]
    found = pair(resolutions, [dial(0, "192.0.2.1", 51), dial(1, "192.0.2.1", 351)])
    assert [found[i].resolutions for i in (0, 1)] == [(0, 1), (2, 3)]
    assert [span_ms(found[i]) for i in (0, 1)] == [(0, 50), (300, 350)]


def test_every_lookup_has_the_search_names_that_went_before_it() -> None:
    """No resolver asks again for a name that does not exist: the second question begins another lookup."""
    resolutions = []
    for start in (0, 300):
        resolutions += [
            asked("llm.lab.corp.example", start, start + 30, rcode="NXDOMAIN"),
            asked("llm.lab.lab.example", start + 30, start + 60, rcode="NXDOMAIN"),
            asked("llm.lab", start + 60, start + 150, "192.0.2.1"),
        ]
    found = pair(resolutions, [dial(0, "192.0.2.1", 151, "llm.lab"), dial(1, "192.0.2.1", 451, "llm.lab")])
    assert [sorted(found[i].resolutions) for i in (0, 1)] == [[0, 1, 2], [3, 4, 5]]
    assert [span_ms(found[i]) for i in (0, 1)] == [(0, 150), (300, 450)]


def test_asking_again_over_tcp_after_a_truncated_answer_is_the_same_lookup() -> None:
    """RFC 7766 section 5: the address comes only with the second answer."""
    short = dataclasses.replace(asked("a.example", 0, 20), truncated=True)
    whole = dataclasses.replace(asked("a.example", 41, 62, "192.0.2.1"), transport="tcp")
    found = pair([short, whole], [dial(0, "192.0.2.1", 63)])
    assert span_ms(found[0]) == (0, 62)


BOTH = [asked("llm.example", 0, 20, "192.0.2.1"), asked("llm.example", 1, 21, "2001:db8::1", type="AAAA")]


def told(*dials: Dial) -> dict[int, tuple[float | None, bool]]:
    return {
        i: (None if one.tried_at is None else one.tried_at / MS, one.superseded) for i, one in pair(BOTH, dials).items()
    }


def test_a_dead_address_is_told_to_the_attempt_that_had_to_wait_for_it() -> None:
    dead = dial(0, "2001:db8::1", 22, failed_ms=7_022, client="2001:db8::99")
    alive = dial(1, "192.0.2.1", 5_022, "llm.example", established_ms=5_042)
    assert told(dead, alive) == {0: (None, True), 1: (22, False)}
    assert span_ms(pair(BOTH, [dead, alive])[1]) == (0, 21), "five seconds later it is still the same lookup"


def test_an_address_that_answered_in_time_cost_nothing() -> None:
    first = dial(0, "2001:db8::1", 22, "llm.example", established_ms=60, client="2001:db8::99")
    also = dial(1, "192.0.2.1", 61, "llm.example", established_ms=300)
    assert told(first, also) == {0: (None, False)}, "what came later had the address from a cache"
    assert told(first, dial(1, "192.0.2.1", 30, "llm.example", established_ms=50))[0] == (None, False)


def test_a_race_that_the_second_address_wins() -> None:
    slow = dial(0, "2001:db8::1", 22, established_ms=900, client="2001:db8::99", failed_ms=950)
    quick = dial(1, "192.0.2.1", 272, "llm.example", established_ms=300)
    assert told(slow, quick) == {0: (None, False), 1: (22, False)}


def test_further_connections_to_the_same_address_are_no_fallback() -> None:
    rows = [dial(i, "192.0.2.1", 22 + i, "llm.example", established_ms=50) for i in range(3)]
    assert set(told(*rows).values()) == {(None, False)}


def test_where_no_address_answered_none_is_superseded() -> None:
    dead = dial(0, "2001:db8::1", 22, failed_ms=300, client="2001:db8::99")
    assert told(dead, dial(1, "192.0.2.1", 272, failed_ms=600)) == {0: (None, False), 1: (22, False)}
