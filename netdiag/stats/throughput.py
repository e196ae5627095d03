"""What went through while requests were in flight, and how many failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from netdiag.records.exchange import Exchange
from netdiag.records.statistics import Throughput
from netdiag.units import NS_PER_S

_EACH_SIDE = 0.975
"""Two one-sided bounds of this level make a two-sided 95 % interval."""


def throughput(rows: Sequence[Exchange]) -> Throughput | None:
    """Of one arm's requests. Pauses between them do not count: a probe that waits between calls is not a slow server. None without any."""
    if not rows:
        return None
    from netdiag.stats.proportion import lower_bound, upper_bound  # scipy: not for those who only read a file

    failed = sum(row.failed for row in rows)
    received = sum(row.response_bytes or 0 for row in rows)
    in_flight_ns = covered_ns((row.started_at, row.ended_at) for row in rows)
    return Throughput(
        requests=len(rows),
        failed=failed,
        failed_share_lo=lower_bound(failed, len(rows), level=_EACH_SIDE),
        failed_share_hi=upper_bound(failed, len(rows), level=_EACH_SIDE),
        response_bytes=received,
        in_flight_ns=in_flight_ns,
        requests_per_s=_rate(len(rows) - failed, in_flight_ns),
        bytes_per_s=_rate(received, in_flight_ns),
    )


def covered_ns(spans: Iterable[tuple[int, int]]) -> int:
    """Time in which at least one of the spans runs."""
    covered = 0
    until: int | None = None
    for start, end in sorted(spans):
        begin = start if until is None else max(start, until)
        covered += max(0, end - begin)
        until = end if until is None else max(until, end)
    return covered


def _rate(amount: int, duration_ns: int) -> float | None:
    return amount * NS_PER_S / duration_ns if duration_ns > 0 else None
