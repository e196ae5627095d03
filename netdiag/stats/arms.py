"""Every arm of a probe against the first one, quantity by quantity, paired by trial (comparisons.md section 1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set

from netdiag.records.exchange import Exchange
from netdiag.records.statistics import Comparison, Statistics
from netdiag.stats.comparison import adjust, compare
from netdiag.stats.distribution import arm_of, durations_ns

PRIMARY = "total"
_TOO_FEW = 2
"""A single pair is an anecdote."""

_Trials = Mapping[int, Mapping[str, int]]
"""Durations by quantity, by trial."""


def compare_arms(exchanges: Iterable[Exchange], statistics: Sequence[Statistics]) -> tuple[Comparison, ...]:
    """One row for each quantity and arm; arms in the order of their names, the first is the baseline. Only counted trials, and of those
    only the ones that both arms have, so that each difference is one of neighbours in time. Empty without arms or with fewer than two pairs.
    """
    uncounted = {row.exchange_id for s in statistics for row in s.excluded}
    arms = _trials_by_arm(exchanges, uncounted)
    names = sorted(arms)
    rows = [row for other in names[1:] for row in _pair(names[0], arms[names[0]], other, arms[other])]
    return adjust(rows)


def _trials_by_arm(exchanges: Iterable[Exchange], uncounted: Set[int]) -> dict[str, dict[int, dict[str, int]]]:
    """The first exchange of each trial: with concurrent calls, or attempts, the others are no neighbours of anything."""
    arms: dict[str, dict[int, dict[str, int]]] = defaultdict(dict)
    for exchange in exchanges:
        if exchange.arm is not None and exchange.trial is not None and exchange.id not in uncounted:
            arms[arm_of(exchange)].setdefault(exchange.trial, durations_ns(exchange))
    return arms


def _pair(baseline: str, a: _Trials, other: str, b: _Trials) -> Iterable[Comparison]:
    common = sorted(a.keys() & b.keys())
    if len(common) < _TOO_FEW:
        return
    quantities = list(dict.fromkeys(name for trial in common for name in a[trial] if name in b[trial]))
    for quantity in quantities:
        shared = [trial for trial in common if quantity in a[trial] and quantity in b[trial]]
        if len(shared) >= _TOO_FEW:
            yield compare(
                quantity,
                baseline,
                [a[trial][quantity] for trial in shared],
                other,
                [b[trial][quantity] for trial in shared],
                paired=True,
                primary=quantity == PRIMARY,
            )
