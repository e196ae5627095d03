"""Arms against each other, quantity by quantity: paired by trial within one probe, unpaired between two runs or files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from netdiag.records.connection import Connection
from netdiag.records.exchange import Exchange
from netdiag.records.statistics import Comparison, Statistics
from netdiag.stats.comparison import adjust, compare
from netdiag.stats.prediction import predict
from netdiag.stats.samples import Sample, by_arm, samples

PRIMARY = ("first_token", "total")
"""The one quantity whose verdict was asked for, chosen before anything is measured: the first of these that both arms have. When a stream's
answer ends depends on how long it became; all other quantities are exploratory."""
_TOO_FEW = 2
"""A single pair is an anecdote."""
_NOT_COMPARED = frozenset({"unattributed", "first_byte", "call_first_byte"})


def compare_arms(
    exchanges: Iterable[Exchange], statistics: Sequence[Statistics], connections: Sequence[Connection] = ()
) -> tuple[Comparison, ...]:
    """One row for each quantity and arm; arms in the order of their names, the first is the baseline. Only counted trials, and of those
    only the ones that both arms have, so that each difference is one of neighbours in time. Empty without arms or with fewer than two pairs.
    """
    rows = [row for row in samples(exchanges, statistics, connections) if row.trial is not None]
    arms = by_arm(rows)
    names = sorted(arms)
    return adjust([row for other in names[1:] for row in compare_samples(arms[names[0]], arms[other])])


def compare_samples(
    a: Sequence[Sample],
    b: Sequence[Sample],
    *,
    margin_ns: int | None = None,
    name_a: str | None = None,
    name_b: str | None = None,
) -> list[Comparison]:
    """B against A, quantity by quantity, in the order in which A has them. Paired where both have trial numbers of one run (then
    ``name_a`` and ``name_b`` are left out), unpaired otherwise. Empty when either has fewer than two calls."""
    paired = name_a is None and name_b is None
    left, right = _neighbours(a, b) if paired else (list(a), list(b))
    if min(len(left), len(right)) < _TOO_FEW:
        return []
    arms = (name_a or left[0].arm, name_b or right[0].arm)
    quantities = dict.fromkeys(name for row in left for name in row.durations_ns if name not in _NOT_COMPARED)
    found = [c for q in quantities if (c := _compare(q, left, right, arms, paired, margin_ns)) is not None]
    primary = next((name for name in PRIMARY if any(c.quantity == name for c in found)), None)
    return [replace(c, primary=c.quantity == primary) for c in found]


def _neighbours(a: Sequence[Sample], b: Sequence[Sample]) -> tuple[list[Sample], list[Sample]]:
    """Rows of the trials that both have, position by position."""
    of_b = {row.trial: row for row in b}
    common = [row for row in a if row.trial in of_b]
    return common, [of_b[row.trial] for row in common]


def _compare(
    quantity: str, a: list[Sample], b: list[Sample], arms: tuple[str, str], paired: bool, margin_ns: int | None
) -> Comparison | None:
    if paired:
        shared = [i for i in range(len(a)) if quantity in a[i].durations_ns and quantity in b[i].durations_ns]
        a, b = [a[i] for i in shared], [b[i] for i in shared]
    else:
        a, b = [r for r in a if quantity in r.durations_ns], [r for r in b if quantity in r.durations_ns]
    if min(len(a), len(b)) < _TOO_FEW:
        return None
    prediction = predict(quantity, a, b)
    return compare(
        quantity,
        arms[0],
        [row.durations_ns[quantity] for row in a],
        arms[1],
        [row.durations_ns[quantity] for row in b],
        paired=paired,
        margin_ns=margin_ns,
        predicted_ns=None if prediction is None else prediction.difference_ns,
        predicted_by=None if prediction is None else prediction.by,
    )
