"""Phases read back into milestones and split again are the same phases."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.analysis.drafts import Draft
from netdiag.analysis.marks import Mark, Milestone
from netdiag.analysis.phases import split
from netdiag.analysis.reread import marks_of
from netdiag.records.exchange import Exchange, Outcome
from netdiag.records.timing import Clock, Method

M = Milestone
COLD = [M.DNS_QUERY, M.DNS_ANSWER, M.SYN, M.SYN_ACK, M.PROXY_ASKED, M.PROXY_READY, M.CLIENT_HELLO, M.TLS_FINISHED]
PLAIN = [M.REQUEST_FIRST, M.REQUEST_LAST, M.RESPONSE_FIRST, M.RESPONSE_LAST, M.READ_LAST]
HELD_BACK = [
    *(M.REQUEST_FIRST, M.REQUEST_HEAD_LAST, M.CONTINUED, M.REQUEST_BODY_FIRST),
    *(M.REQUEST_LAST, M.RESPONSE_FIRST, M.RESPONSE_LAST),
]


def exchange_of(marks: dict[Milestone, Mark], outcome: Outcome, ended: Mark | None) -> Exchange:
    return Draft(connection=None, marks=marks, outcome=outcome, ended=ended).exchange(0)


def again(exchange: Exchange) -> Exchange:
    marks, ended = marks_of(exchange)
    b = split(marks, ended=ended)
    return dataclasses.replace(
        exchange,
        phases=b.phases,
        started_at=b.started_at,
        ended_at=b.ended_at,
        total_ns=b.total_ns,
        unattributed_ns=b.unattributed_ns,
    )


@given(
    st.sampled_from([[*COLD, *PLAIN], PLAIN, [*COLD[2:4], *HELD_BACK], HELD_BACK, [M.SUBMITTED, M.ASSIGNED, *PLAIN]]),
    st.lists(st.integers(0, 50), min_size=13, max_size=13),
    st.lists(st.sampled_from(list(Clock)), min_size=13, max_size=13),
)
def test_a_whole_exchange(order: list[Milestone], steps: list[int], clocks: list[Clock]) -> None:
    at, marks = 1_000, {}
    for milestone, step, clock in zip(order, steps, clocks, strict=False):
        at += step
        marks[milestone] = Mark(at, at, clock)
    exchange = exchange_of(marks, Outcome.OK, None)
    assert [(p.name, p.started_at, p.ended_at) for p in again(exchange).phases] == [
        (p.name, p.started_at, p.ended_at) for p in exchange.phases
    ]
    assert again(exchange).total_ns == exchange.total_ns


@pytest.mark.parametrize("reached", range(1, 12))
def test_one_that_stopped_in_the_middle(reached: int) -> None:
    order = [*COLD, *PLAIN][:reached]
    marks = {milestone: Mark(10 * i, i) for i, milestone in enumerate(order)}
    exchange = exchange_of(marks, Outcome.RESET, Mark(500, 99))
    assert again(exchange) == exchange


def test_bounds_are_kept() -> None:
    marks = {m: Mark(10 * i) for i, m in enumerate(PLAIN[:4])}
    marks[M.RESPONSE_FIRST] = Mark(20, None, Clock.WIRE, Method.BOUNDED, 15, 28)
    exchange = exchange_of(marks, Outcome.UNKNOWN, None)
    wait = again(exchange).phases[1]
    assert (wait.method, wait.lo_ns, wait.hi_ns) == (Method.BOUNDED, 5, 18)
