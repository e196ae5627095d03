"""A watcher that does not keep up claims no percentile, and its goals count from the schedule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netdiag.cli.goals import judge_all
from netdiag.cli.lateness import as_scheduled, median_lag_ns, without_percentiles
from netdiag.probe.watch import Tick
from netdiag.stats.distribution import statistics
from netdiag.stats.goals import Answer, parse_goals
from tests.support.fabricated import analysis, exchange, ns


def ticks(*lags_ms: float) -> list[Tick]:
    call = replace(exchange("send 1 | wait 5 | transfer 4"), arm="h1", trial=1)
    return [
        Tick(number=i, scheduled_at=0, lag_ns=ns(lag), analysis=analysis(exchanges=[replace(call, trial=i)]))
        for i, lag in enumerate(lags_ms, 1)
    ]


@pytest.mark.parametrize(("lags", "late_ms"), [((), 0), ((0, 0, 500), 0), ((9, 9, 9), 0), ((0, 40, 500), 40)])
def test_half_of_the_calls_decide(lags: tuple[float, ...], late_ms: float) -> None:
    assert median_lag_ns(ticks(*lags)) == ns(late_ms)


def test_goals_count_from_the_schedule_where_most_calls_were_late() -> None:
    shifted = as_scheduled(ticks(200, 300, 250))
    totals = [e.total_ns for tick in shifted if tick.analysis for e in tick.analysis.exchanges]
    assert totals == [ns(210), ns(310), ns(260)]
    for tick in shifted:
        assert tick.analysis is not None
        for e in tick.analysis.exchanges:
            assert sum(p.duration_ns for p in e.phases) + e.unattributed_ns == e.total_ns == e.ended_at - e.started_at
        ((_, result),) = judge_all(tick.analysis, parse_goals("total=100"))
        assert result.answer is Answer.BROKEN


def test_calls_in_time_stay_as_they_are() -> None:
    punctual = ticks(0, 1, 2)
    assert as_scheduled(punctual) == punctual


def test_only_percentiles_are_withheld() -> None:
    rows = [replace(exchange("wait 5"), id=i, arm="h1", trial=i + 1) for i in range(300)]
    whole = replace(analysis(exchanges=rows), statistics=statistics(rows))
    assert whole.statistics[0].phases["total"].p99 is not None
    plain = without_percentiles(whole).statistics[0].phases["total"]
    assert (plain.p90, plain.p95, plain.p99) == (None, None, None)
    assert (plain.p50, plain.n) == (ns(5), 300)
