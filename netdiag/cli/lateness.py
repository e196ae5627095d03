"""Calls that began later than they were due: whoever counts from their beginning mistakes a stalled watcher for a healthy service
(coordinated omission), so where most are late their percentiles are not shown, and goals count from the schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netdiag.probe.watch import Tick
    from netdiag.records.analysis import Analysis
    from netdiag.records.exchange import Exchange
    from netdiag.records.statistics import Distribution

LATE_NS = 10_000_000
"""A median lag above this makes percentiles worthless (the rule of thumb of inference-perf)."""


def median_lag_ns(made: Sequence[Tick]) -> int:
    """By how much half of the calls, or more, were late; 0 where that is little."""
    lags = sorted(tick.lag_ns for tick in made)
    median = lags[len(lags) // 2] if lags else 0
    return median if median > LATE_NS else 0


def without_percentiles(whole: Analysis) -> Analysis:
    """The same, with medians and extremes only."""
    return replace(
        whole,
        statistics=tuple(
            replace(arm, phases={name: _plain(spread) for name, spread in arm.phases.items()})
            for arm in whole.statistics
        ),
    )


def _plain(spread: Distribution) -> Distribution:
    return replace(spread, p90=None, p95=None, p99=None)


def as_scheduled(made: Sequence[Tick]) -> list[Tick]:
    """The ticks with their calls counted from when they were due, where most of them were late; the lag is time that no phase explains."""
    if not median_lag_ns(made):
        return list(made)
    return [
        replace(
            tick,
            analysis=replace(tick.analysis, exchanges=tuple(_earlier(e, tick.lag_ns) for e in tick.analysis.exchanges)),
        )
        for tick in made
        if tick.analysis is not None
    ]


def _earlier(exchange: Exchange, lag_ns: int) -> Exchange:
    return replace(
        exchange,
        started_at=exchange.started_at - lag_ns,
        total_ns=exchange.total_ns + lag_ns,
        unattributed_ns=exchange.unattributed_ns + lag_ns,
    )
