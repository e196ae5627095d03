"""Quantiles only where n allows them, and failures never among the durations."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.records.exchange import Exchange, Outcome
from netdiag.stats.distribution import NEEDED, distribution, median_interval_ranks, statistics


def exchange(
    id: int, total_ns: int, *, outcome: Outcome = Outcome.OK, arm: str | None = None, reused: bool = False
) -> Exchange:
    return Exchange(
        id=id, connection_id=0, started_at=0, ended_at=total_ns, total_ns=total_ns, unattributed_ns=total_ns,
        outcome=outcome, arm=arm, reused=reused, protocol="h2",
    )  # fmt: skip


@pytest.mark.parametrize(("percent", "name"), [(90, "p90"), (95, "p95"), (99, "p99")])
def test_a_percentile_appears_exactly_when_an_interval_for_it_exists(percent: int, name: str) -> None:
    n = NEEDED[percent]
    assert getattr(distribution(range(n - 1)), name) is None
    assert getattr(distribution(range(n)), name) is not None


@pytest.mark.parametrize("percent", [50, 90, 95, 99])
def test_the_needed_n_is_the_smallest_with_a_two_sided_interval(percent: int) -> None:
    def widest_interval_covers(n: int) -> float:
        q = percent / 100
        return 1 - q**n - (1 - q) ** n

    assert widest_interval_covers(NEEDED[percent]) >= 0.95 > widest_interval_covers(NEEDED[percent] - 1)


def test_no_value_is_not_zero() -> None:
    empty = distribution([])
    assert (empty.n, empty.min, empty.p50, empty.max) == (0, None, None, None)


def test_few_values_have_a_median_but_no_interval() -> None:
    few = distribution([30, 10, 20])
    assert (few.min, few.p50, few.max, few.interval_lo, few.interval_hi) == (10, 20, 30, None, None)


@pytest.mark.parametrize("n", [6, 7, 10, 20, 30, 100, 1000, 1001, 5000])
def test_the_interval_of_the_median_covers_95_percent(n: int) -> None:
    ranks = median_interval_ranks(n)
    assert ranks is not None
    lo, hi = ranks
    outside = sum(comb(n, k) for k in range(lo)) / 2**n
    assert lo == n + 1 - hi or n > 1000
    assert 2 * outside <= 0.05 + 1e-3
    assert 1 <= lo < hi <= n


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=400))
def test_every_number_lies_between_the_extremes(values: list[int]) -> None:
    d = distribution(values)
    numbers = [x for x in (d.min, d.interval_lo, d.p50, d.interval_hi, d.max) if x is not None]
    assert numbers == sorted(numbers)
    assert all(x in values for x in (d.p90, d.p95, d.p99) if x is not None)


def test_failures_are_counted_but_never_averaged() -> None:
    rows = [exchange(0, 100), exchange(1, 1, outcome=Outcome.REFUSED), exchange(2, 300)]
    (arm,) = statistics(rows)
    assert arm.n == 2
    assert [e.exchange_id for e in arm.excluded] == [1]
    assert (arm.phases["total"].min, arm.phases["total"].max) == (100, 300)
    assert arm.outcomes == {"ok": 2, "refused": 1}


def test_new_and_reused_connections_are_different_arms_of_a_file() -> None:
    assert [s.arm for s in statistics([exchange(0, 5), exchange(1, 2, reused=True)])] == ["h2", "h2, reused"]
    assert [s.arm for s in statistics([exchange(0, 5, arm="h1"), exchange(1, 2, arm="h2")])] == ["h1", "h2"]
