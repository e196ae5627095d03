"""What a call of several attempts took, and that hops and retries are no trials of their own."""

from __future__ import annotations

import json
from dataclasses import replace

from netdiag.cli.goals import judge_all
from netdiag.export.json import dumps
from netdiag.records.call import Backoff, Call
from netdiag.records.exchange import Exchange, Outcome
from netdiag.records.labels import result_label
from netdiag.stats.calls import call_quantities_ns, redirected, whole_calls
from netdiag.stats.distribution import statistics
from netdiag.stats.goals import parse_goals
from netdiag.stats.samples import samples_of, samples_of_document
from tests.support.analyses import streamed
from tests.support.fabricated import analysis, connection, exchange, ns


def attempt(number: int, call: int, *, at_ms: float, status: int = 200, trial: int = 1, spans: str = "") -> Exchange:
    outcome = Outcome.OK if status < 400 else Outcome.HTTP_ERROR
    row = exchange(spans or "dns 1 | tcp 1 | send 1 | wait 5 | transfer 2", id=number, at_ms=at_ms)
    return replace(row, call_id=call, status=status, outcome=outcome, trial=trial, arm="h1", protocol="http/1.1")


REDIRECTED = (attempt(0, 0, at_ms=0, status=307), attempt(1, 0, at_ms=12))
RETRIED = (attempt(2, 1, at_ms=100, status=503, trial=2), attempt(3, 1, at_ms=410, trial=2))
SINGLE = (attempt(4, 2, at_ms=500, trial=3),)


def test_a_hop_of_a_redirect_is_no_trial() -> None:
    (arm,) = statistics((*REDIRECTED, *SINGLE))
    assert arm.n == 2
    assert [(e.exchange_id, e.reason) for e in arm.excluded] == [(0, "redirect 307")]


def test_a_redirect_that_is_not_followed_is_an_answer() -> None:
    alone = attempt(0, 0, at_ms=0, status=307)
    assert redirected([alone]) == {}
    assert statistics([alone])[0].n == 1


def test_a_call_counts_from_its_first_attempt() -> None:
    (arm,) = statistics((*REDIRECTED, *RETRIED, *SINGLE))
    assert arm.n == 3
    call = arm.phases["call"]
    assert (call.min, call.p50, call.max) == (ns(10), ns(22), ns(320))
    assert arm.phases["total"].max == ns(10)


def test_without_several_attempts_a_call_is_its_exchange() -> None:
    assert call_quantities_ns(SINGLE) == {}
    assert "call" not in statistics(SINGLE)[0].phases


def test_a_call_has_every_phase_of_its_attempts_and_its_own_first_token() -> None:
    stream = streamed().exchanges[0]
    again = replace(stream, id=1, call_id=0)
    first = replace(
        attempt(0, 0, at_ms=0, status=503), ended_at=stream.started_at - ns(200), started_at=stream.started_at - ns(300)
    )
    (call,) = whole_calls([first, again])
    (alone,) = whole_calls([replace(stream, call_id=0)])
    assert call.durations_ns()["first_token"] == ns(300) + alone.durations_ns()["first_token"]
    assert call.durations_ns()["total"] == ns(300) + stream.total_ns
    assert call.durations_ns()["send"] == ns(1) + alone.durations_ns()["send"]


def test_exchanges_of_no_call_are_calls_of_their_own() -> None:
    rows = [replace(row, call_id=None) for row in RETRIED]
    assert [len(call.attempts) for call in whole_calls(rows)] == [1, 1]


def test_comparisons_see_whole_calls_from_records_and_from_the_document() -> None:
    rows = (*RETRIED, *SINGLE)
    calls = (
        Call(
            id=1,
            url="https://api.example.com/",
            attempts=(0, 1),
            backoff=(Backoff(ns=ns(300), cause="computed"),),
            total_ns=ns(320),
            outcome="ok",
            policy="openai",
        ),
        Call(
            id=2,
            url="https://api.example.com/",
            attempts=(2,),
            backoff=(),
            total_ns=ns(10),
            outcome="ok",
            policy="openai",
        ),
    )
    numbered = tuple(replace(row, id=place) for place, row in enumerate(rows))
    whole = replace(
        analysis(exchanges=numbered, connections=(connection(),), calls=calls), statistics=statistics(numbered)
    )
    expected = [(2, ns(320)), (3, ns(10))]
    assert [(s.trial, s.durations_ns["call"]) for s in samples_of(whole)] == expected
    again = samples_of_document(json.loads(dumps(whole)))
    assert [(s.trial, s.durations_ns["call"]) for s in again] == expected


def test_a_stream_that_ends_with_an_error_event_is_a_failure() -> None:
    """200 was a promise: whoever counts the answers that came would call an overloaded model healthy."""
    whole = streamed().exchanges[0]
    assert whole.stream is not None
    broken = replace(whole, outcome=Outcome.STREAM_ERROR)
    assert (whole.failed, broken.failed) == (False, True)
    assert (result_label(whole), result_label(broken)) == ("200", "200 error event")
    (arm,) = statistics([replace(row, id=id, arm="h1", trial=1) for id, row in enumerate((whole, broken))])
    assert (arm.n, [(e.exchange_id, e.reason) for e in arm.excluded]) == (1, [(1, "stream_error 200")])
    assert arm.throughput is not None
    assert (arm.throughput.requests, arm.throughput.failed) == (2, 1)
    ((_, goal),) = judge_all(analysis(exchanges=(broken,)), parse_goals("error=1%"))
    assert (goal.over, goal.n) == (1, 1)
