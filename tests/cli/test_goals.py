from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result

from netdiag.cli.goals import exit_code, judge_all
from netdiag.records.exchange import Outcome
from netdiag.stats.distribution import statistics
from netdiag.stats.goals import parse_goals
from tests.support.fabricated import analysis, exchange

Run = Callable[..., Result]


@pytest.mark.parametrize(
    ("goals", "code", "words"),
    [
        ("total=60000", 0, "met (0 of 1 over)"),
        ("total=1", 4, "broken (1 of 1 over)"),
        ("p99.total=60000", 0, "cannot be shown with n = 1"),
        ("total=60000,wait=0.001", 4, "wait=0.001: broken"),
    ],
)
def test_goals_of_a_file(run: Run, good: Path, goals: str, code: int, words: str) -> None:
    result = run("analyze", good, "--slo", goals)
    assert result.exit_code == code
    assert words in result.stdout


def test_what_is_needed_is_said_in_full_however_narrow_the_page(run: Run, good: Path) -> None:
    said = " ".join(run("analyze", good, "--slo", "error=1%,p99.total=60000").stdout.split())
    assert said.count("needs 299 trials)") == 4


def test_goals_leave_the_document_alone(run: Run, good: Path) -> None:
    result = run("analyze", good, "--json", "--slo", "total=1")
    assert result.exit_code == 4
    assert result.stdout == run("analyze", good, "--json").stdout
    assert "broken" in result.stderr


def test_what_is_no_goal_is_said_first(run: Run) -> None:
    assert run("analyze", "none.pcap", "--slo", "fast").exit_code == 64
    assert run("probe", "https://example.com/", "--slo", "total=fast").exit_code == 64


def test_a_failed_trial_misses_every_goal() -> None:
    good = exchange("send 1 | wait 5 | transfer 1", arm="h1", trial=1)
    bad = replace(good, outcome=Outcome.RESET, status=None, trial=2)
    rows = analysis(good, bad)
    (_, result), (_, errors) = judge_all(rows, parse_goals("total=100,error=1%"))
    assert (result.over, result.n) == (1, 2)
    assert errors.over == 1
    assert exit_code([("h1", result)]) == 4


def test_the_first_round_counts_for_nothing() -> None:
    slow = exchange("send 1 | wait 5000", arm="h1", trial=0)
    quick = [exchange("send 1 | wait 5", arm="h1", trial=i) for i in (1, 2)]
    rows = analysis(slow, *quick)
    rows = replace(rows, source=replace(rows.source, kind="probe"), statistics=statistics(rows.exchanges))
    ((_, result),) = judge_all(rows, parse_goals("total=100"))
    assert (result.over, result.n) == (0, 2)


def test_goals_are_about_calls_not_attempts() -> None:
    """A retry that succeeded is no failure, but the wait for it is the user's."""
    refused = replace(
        exchange("send 1 | wait 5 | transfer 1", id=0),
        arm="h1",
        trial=1,
        call_id=0,
        outcome=Outcome.HTTP_ERROR,
        status=503,
    )
    answered = replace(exchange("send 1 | wait 5 | transfer 1", id=1, at_ms=307), arm="h1", trial=1, call_id=0)
    rows = analysis(refused, answered)
    found = dict(zip(("error", "total"), judge_all(rows, parse_goals("error=1%,total=300")), strict=True))
    assert (found["error"][1].over, found["error"][1].n) == (0, 1)
    assert (found["total"][1].over, found["total"][1].n) == (1, 1)
    assert judge_all(rows, parse_goals("total=320"))[0][1].over == 0


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.RESET])
def test_a_first_round_counts_in_no_goal_however_it_ended(outcome: Outcome) -> None:
    first = replace(exchange("send 1 | wait 5 | transfer 1", id=0), arm="h1", trial=0, call_id=0, outcome=outcome)
    counted = replace(exchange("send 1 | wait 5 | transfer 1", id=1, at_ms=100), arm="h1", trial=1, call_id=1)
    rows = replace(analysis(first, counted), statistics=statistics([first, counted]))
    ((_, result),) = judge_all(rows, parse_goals("error=1%"))
    assert (result.over, result.n) == (0, 1)
