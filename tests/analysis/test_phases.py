"""The splitter: each rule by a small story, and the sum for every story there could be."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.analysis.marks import Mark, Marks, Milestone
from netdiag.analysis.phases import SPLITTER, Breakdown, split
from netdiag.records.timing import Clock, Method, PhaseName

M = Milestone
MS = 1_000_000


def story(**at_ms: float) -> Marks:
    """``story(syn=0, syn_ack=20)``: marks by milestone in milliseconds; the packet number is the time."""
    return {M(name.replace("_", "-")): Mark(int(ms * MS), int(ms)) for name, ms in at_ms.items()}


def told(breakdown: Breakdown) -> list[tuple[str, float, float]]:
    return [(str(p.name), p.started_at / MS, p.ended_at / MS) for p in breakdown.phases]


COLD_TLS = {
    "dns_query": 0,
    "dns_answer": 10,
    "syn": 11,
    "syn_ack": 31,
    "client_hello": 32,
    "tls_finished": 55,
    "request_first": 56,
    "request_last": 57,
    "response_first": 157,
    "response_last": 200,
}


def test_a_cold_https_request_has_every_phase_and_the_gaps_are_unattributed() -> None:
    b = split(story(**COLD_TLS))
    assert told(b) == [
        ("dns", 0, 10),
        ("tcp", 11, 31),
        ("tls", 32, 55),
        ("send", 56, 57),
        ("wait", 57, 157),
        ("transfer", 157, 200),
    ]
    assert b.total_ns == 200 * MS
    assert b.unattributed_ns == 3 * MS


def test_a_reused_connection_has_no_set_up_phases() -> None:
    b = split(story(request_first=0, request_last=0, response_first=50, response_last=50))
    assert told(b) == [("send", 0, 0), ("wait", 0, 50), ("transfer", 50, 50)]


def test_false_start_and_early_data_end_the_handshake_at_the_first_request_octet() -> None:
    marks = story(**{**COLD_TLS, "request_first": 40, "request_last": 41})
    assert ("tls", 32, 40) in told(split(marks))
    assert ("send", 40, 41) in told(split(marks))


def test_100_continue_is_no_part_of_the_wait() -> None:
    b = split(
        story(
            request_first=0,
            request_head_last=1,
            continued=41,
            request_body_first=42,
            request_last=60,
            response_first=100,
            response_last=100,
        )
    )
    assert told(b) == [
        ("send", 0, 1),
        ("continue", 1, 41),
        ("send", 42, 60),
        ("wait", 60, 100),
        ("transfer", 100, 100),
    ]
    assert b.unattributed_ns == 1 * MS


def test_an_answer_before_the_upload_ends_leaves_a_wait_of_zero() -> None:
    b = split(story(request_first=0, request_last=90, response_first=30, response_last=60))
    assert told(b) == [("send", 0, 30), ("wait", 30, 30), ("transfer", 30, 60)]
    assert (b.ended_at, b.unattributed_ns) == (60 * MS, 0), "the rest of the upload is not the answer's time"
    assert (b.phases[1].first_packet, b.phases[1].last_packet) == (30, 30)


def test_an_answer_from_before_its_request_tells_of_a_clock_that_was_set() -> None:
    b = split(story(syn=0, syn_ack=20, request_first=21, request_last=21, response_first=-900, response_last=-890))
    assert (b.total_ns, b.unattributed_ns) == (921 * MS, 901 * MS), "unknown time is not 0"


def test_the_queue_gives_way_to_the_set_up_done_inside_it() -> None:
    marks = story(submitted=-5, assigned=55.5, **COLD_TLS)
    assert told(split(marks))[0] == ("queue", -5, 0)


def test_a_request_that_waits_for_a_connection_queues_until_it_gets_one() -> None:
    b = split(story(submitted=0, assigned=80, request_first=81, request_last=81, response_first=90, response_last=91))
    assert told(b)[0] == ("queue", 0, 80)


def test_through_a_proxy() -> None:
    b = split(
        story(
            syn=0,
            syn_ack=5,
            proxy_asked=6,
            proxy_ready=40,
            client_hello=41,
            tls_finished=70,
            request_first=71,
            request_last=71,
            response_first=99,
            response_last=99,
        )
    )
    assert told(b)[:3] == [("tcp", 0, 5), ("proxy", 6, 40), ("tls", 41, 70)]


@pytest.mark.parametrize(
    ("seen", "last_phase"),
    [
        ({"syn": 0}, ("tcp", 0, 300)),
        ({"dns_query": 0}, ("dns", 0, 300)),
        ({"syn": 0, "syn_ack": 20, "client_hello": 21}, ("tls", 21, 300)),
        ({"syn": 0, "syn_ack": 20, "proxy_asked": 21}, ("proxy", 21, 300)),
        ({"request_first": 0}, ("send", 0, 300)),
        ({"request_first": 0, "request_head_last": 1}, ("continue", 1, 300)),
        ({"request_first": 0, "request_last": 1}, ("wait", 1, 300)),
        ({"request_first": 0, "request_last": 1, "response_first": 40}, ("transfer", 40, 300)),
    ],
)
def test_a_failure_stops_the_phase_that_was_going_on(
    seen: dict[str, float], last_phase: tuple[str, float, float]
) -> None:
    b = split(story(**seen), ended=Mark(300 * MS, 300))
    assert told(b)[-1] == last_phase
    assert b.ended_at == 300 * MS
    assert b.phases[-1].last_packet == 300


def test_what_was_not_captured_is_absent_and_never_zero() -> None:
    b = split(story(syn=0, request_first=30, request_last=30, response_first=60, response_last=60))
    assert [name for name, _, _ in told(b)] == ["send", "wait", "transfer"]
    assert b.unattributed_ns == 30 * MS


def test_a_failure_after_everything_is_no_deliver_phase() -> None:
    b = split(story(request_first=0, request_last=0, response_first=5, response_last=6), ended=Mark(9 * MS))
    assert told(b)[-1] == ("transfer", 5, 6)
    assert b.unattributed_ns == 3 * MS


def test_bounds_come_from_the_marks() -> None:
    marks = story(request_first=0, request_last=10, response_last=90)
    marks[M.RESPONSE_FIRST] = Mark(50 * MS, 50, Clock.WIRE, Method.BOUNDED, 40 * MS, 70 * MS)
    wait = split(marks).phases[1]
    assert (wait.lo_ns, wait.duration_ns, wait.hi_ns) == (30 * MS, 40 * MS, 60 * MS)
    assert wait.method is Method.BOUNDED


def test_a_span_between_two_clocks_is_no_better_than_the_worse_one() -> None:
    marks = story(response_first=0, response_last=5)
    marks[M.READ_LAST] = Mark(9 * MS, None, Clock.APPLICATION)
    assert [str(p.clock) for p in split(marks).phases] == ["wire", "application"]


EVERY_STORY = st.dictionaries(
    st.sampled_from(list(Milestone)),
    st.builds(
        Mark,
        at=st.integers(-50, 50),
        packet=st.none() | st.integers(1, 99),
        clock=st.sampled_from(list(Clock)),
        method=st.sampled_from(list(Method)),
        lo=st.none() | st.integers(-60, 60),
        hi=st.none() | st.integers(-60, 60),
    ),
    min_size=1,
)


@given(EVERY_STORY, st.none() | st.builds(Mark, at=st.integers(-60, 60)))
@settings(max_examples=400)
def test_the_sum_is_always_the_total_and_spans_are_disjoint_and_ordered(marks: Marks, ended: Mark | None) -> None:
    b = split(marks, ended=ended)
    assert b.total_ns == b.ended_at - b.started_at >= 0
    assert sum(p.duration_ns for p in b.phases) + b.unattributed_ns == b.total_ns
    assert b.unattributed_ns >= 0
    cursor = b.started_at
    for phase in b.phases:
        assert cursor <= phase.started_at <= phase.ended_at <= b.ended_at
        assert phase.duration_ns == phase.ended_at - phase.started_at
        assert 0 <= phase.lo_ns <= phase.duration_ns <= phase.hi_ns
        cursor = phase.ended_at


@given(EVERY_STORY, st.integers(-(10**9), 10**18))
def test_shifting_all_times_changes_nothing(marks: Marks, by: int) -> None:
    def moved(mark: Mark) -> Mark:
        return mark._replace(
            at=mark.at + by,
            lo=None if mark.lo is None else mark.lo + by,
            hi=None if mark.hi is None else mark.hi + by,
        )

    def shape(b: Breakdown) -> list[object]:
        return [(p.name, p.duration_ns, p.lo_ns, p.hi_ns, p.method, p.clock) for p in b.phases]

    here, there = split(marks), split({k: moved(v) for k, v in marks.items()})
    assert shape(here) == shape(there)
    assert there.started_at - here.started_at == by
    assert here.unattributed_ns == there.unattributed_ns


def test_every_phase_has_a_row() -> None:
    assert {rule.phase for rule in SPLITTER} == set(PhaseName)
