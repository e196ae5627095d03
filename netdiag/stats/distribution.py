"""Distributions of exchanges by arm, honest about what n allows.

A quantile is given only when a two-sided 95 % distribution-free interval for it exists; an interval is a pair of order statistics and
assumes nothing about the shape. Failed exchanges are counted by outcome and never enter a duration.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import ceil, comb
from typing import Any

import numpy as np

from netdiag.analysis.exchange_columns import IN_RECORD, OUTCOMES, ExchangeRows
from netdiag.analysis.exchange_columns import arm_of as arm_in_file
from netdiag.records.connection import Connection
from netdiag.records.exchange import CONNECT, Exchange, Outcome
from netdiag.records.statistics import Distribution, Exclusion, Statistics
from netdiag.stats.calls import call_quantities_ns, redirected
from netdiag.stats.durations import durations_ns
from netdiag.stats.labels import mislabelled
from netdiag.stats.throughput import throughput
from netdiag.wire.distinct import by_appearance
from netdiag.wire.tables import NONE, Bool, Int64

LEVEL = 0.95
_TAIL = (1 - LEVEL) / 2
NEEDED = {50: 6, 90: 29, 95: 59, 99: 299}
"""Smallest n for which a two-sided 95 % distribution-free interval of the percentile exists; the median itself is shown from n = 1."""

FIRST_ROUND = "first round"
"""Of a probe: it pays for cold caches everywhere."""
_SUCCESS = frozenset({Outcome.OK, Outcome.UNKNOWN})
"""Without keys nothing says that an exchange failed, so it counts."""


def distribution(values_ns: Iterable[int]) -> Distribution:
    """The distribution of one quantity; every number is None when there is no value."""
    return _of_ordered(sorted(values_ns))


class _Ordered(Sequence[int]):
    """A sorted column whose elements come out as Python's integers."""

    def __init__(self, column: Int64) -> None:
        self._column = column
        self._column.sort()  # it is ours

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, place: Any) -> Any:
        return int(self._column[place])


def _of_ordered(ordered: Sequence[int]) -> Distribution:
    n = len(ordered)
    if n == 0:
        return Distribution(n=0, min=None, p50=None, p90=None, p95=None, p99=None, max=None)
    interval = median_interval_ranks(n)
    return Distribution(
        n=n,
        min=ordered[0],
        p50=median(ordered),
        p90=_percentile(ordered, 90),
        p95=_percentile(ordered, 95),
        p99=_percentile(ordered, 99),
        max=ordered[-1],
        interval_lo=None if interval is None else ordered[interval[0] - 1],
        interval_hi=None if interval is None else ordered[interval[1] - 1],
    )


def median(ordered: Sequence[int]) -> int:
    """The middle value, or the mean of the two middle ones rounded down. ``ordered`` is sorted and not empty."""
    n = len(ordered)
    return ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) // 2


def _percentile(ordered: Sequence[int], percent: int) -> int | None:
    """Nearest rank: a value that was measured, never one between two; None when n cannot support it."""
    n = len(ordered)
    return ordered[ceil(percent * n / 100) - 1] if n >= NEEDED[percent] else None


@lru_cache(maxsize=1024)
def median_interval_ranks(n: int) -> tuple[int, int] | None:
    """Ranks (from 1) of the two order statistics that enclose the median with at least 95 %; None for n < 6."""
    if n < NEEDED[50]:
        return None
    if n > 1000:  # the binomial is as good as normal, and its exact sums are large integers
        half = 0.98 * n**0.5
        return max(1, int((n - 1) / 2 - half)), min(n, ceil((n + 3) / 2 + half))
    below, rank = 1, 1  # P(rank-th value > median) = P(Binomial(n, 1/2) < rank)
    while (below + comb(n, rank)) / 2**n <= _TAIL:
        below += comb(n, rank)
        rank += 1
    return rank, n + 1 - rank


def arm_of(exchange: Exchange) -> str:
    """The probe's arm; in a file the protocol, with new and reused connections apart because they answer different questions."""
    return exchange.arm if exchange.arm is not None else arm_in_file(exchange.protocol, reused=exchange.reused)


def statistics(exchanges: Iterable[Exchange], connections: Sequence[Connection] = ()) -> tuple[Statistics, ...]:
    """One row per arm, in the order in which the arms first appear. With ``connections``, a trial that the wire shows to be something
    else than its arm's name says is left out, with the reason."""
    if isinstance(exchanges, ExchangeRows):  # of a file, where no arm was asked for
        return _of_columns(exchanges)
    arms: dict[str, list[Exchange]] = defaultdict(list)
    for exchange in exchanges:
        arms[arm_of(exchange)].append(exchange)
    return tuple(_of_arm(arm, rows, connections) for arm, rows in arms.items())


def _of_arm(arm: str, rows: list[Exchange], connections: Sequence[Connection]) -> Statistics:
    values: dict[str, list[int]] = defaultdict(list)
    excluded: list[Exclusion] = []
    hops, calls = redirected(rows), call_quantities_ns(rows)
    for row in rows:
        reason = _excluded(row) or hops.get(row.id) or mislabelled(row, _connection_of(row, connections))
        if reason is not None:
            excluded.append(Exclusion(exchange_id=row.id, reason=reason))
            continue
        for name, value in (durations_ns(row) | calls.get(row.id, {})).items():
            values[name].append(value)
    return Statistics(
        arm=arm,
        n=len(rows) - len(excluded),
        excluded=tuple(excluded),
        phases={name: distribution(values[name]) for name in _ORDER if name in values},
        outcomes=dict(Counter(str(row.outcome) for row in rows)),
        throughput=throughput([row for row in rows if row.trial]) if arm == rows[0].arm else None,
    )


def _of_columns(exchanges: ExchangeRows) -> tuple[Statistics, ...]:
    """The same without a record of each exchange; only of those that do not count, to say why."""
    columns = exchanges.columns
    counts = ~columns.set_aside & np.isin(columns.outcome, [OUTCOMES.index(outcome) for outcome in _SUCCESS])
    return tuple(_of_arm_column(exchanges, counts, arm) for arm in by_appearance(columns.arm))


def _of_arm_column(exchanges: ExchangeRows, counts: Bool, arm: int) -> Statistics:
    columns = exchanges.columns
    own = columns.arm == arm
    good = own & counts
    values = {**columns.durations_ns, "unattributed": columns.unattributed_ns, "total": columns.total_ns}
    numbers = np.bincount(columns.outcome[own])
    return Statistics(
        arm=columns.arms[arm],
        n=int(np.count_nonzero(good)),
        excluded=_exclusions(exchanges, np.flatnonzero(own & ~counts)),
        phases={name: spread for name in _ORDER if (spread := _of_column(values.get(name), good, exchanges)).n},
        outcomes={str(OUTCOMES[code]): int(numbers[code]) for code in by_appearance(columns.outcome[own])},
    )


def _exclusions(exchanges: ExchangeRows, places: Int64) -> tuple[Exclusion, ...]:
    """Why each does not count. Of those that failed columns tell; only what else sets one aside stands in its record."""
    columns = exchanges.columns
    rows = zip(places.tolist(), columns.outcome[places].tolist(), columns.status[places].tolist(), strict=True)
    return tuple(
        Exclusion(exchange_id=place, reason=_why(exchanges, place, OUTCOMES[code], s)) for place, code, s in rows
    )


def _why(exchanges: ExchangeRows, place: int, outcome: Outcome, status: int) -> str:
    if outcome in _SUCCESS or status == IN_RECORD:
        return _excluded(exchanges[place]) or ""
    return str(outcome) if status == NONE else f"{outcome} {status}"


def _of_column(column: Int64 | None, good: Bool, exchanges: ExchangeRows) -> Distribution:
    if column is None:
        return _of_ordered(())
    chosen = column[good]
    exchanges.release()
    return _of_ordered(_Ordered(chosen[chosen != NONE]))


_ORDER = (
    *(
        "queue",
        "dns",
        "proxy",
        "tcp",
        "tls",
        "send",
        "continue",
        "wait",
        "transfer",
        "deliver",
        "unattributed",
        "total",
    ),
    *("first_byte", "first_event", "first_token", "first_visible"),
    *("call", "call_first_byte", "call_first_event", "call_first_token", "call_first_visible"),
)


def _connection_of(exchange: Exchange, connections: Sequence[Connection]) -> Connection | None:
    known = exchange.connection_id is not None and exchange.connection_id < len(connections)
    return connections[exchange.connection_id] if known and exchange.connection_id is not None else None


def _status(exchange: Exchange) -> str:
    """What says how it failed: a gRPC call that fails is answered with 200."""
    if exchange.grpc_status:
        return f"grpc-status {exchange.grpc_status}"
    return "" if exchange.status is None else str(exchange.status)


def _excluded(exchange: Exchange) -> str | None:
    """Why this exchange's durations do not count; None when they do."""
    if exchange.trial == 0:
        return FIRST_ROUND
    if exchange.outcome not in _SUCCESS:
        return " ".join(filter(None, (str(exchange.outcome), _status(exchange))))
    if exchange.method == CONNECT:
        return "sets up a tunnel (CONNECT)"
    return "pushed by the server" if exchange.pushed else None
