"""What a difference between two arms should be, from their round trips alone, before it is measured.

A measured difference that is far from the predicted one is itself a finding: something other than the number of round trips differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from netdiag.stats.samples import Sample
from netdiag.units import format_ms

_FROM_ROUND_TRIPS = {"tcp": 1, "wait": 1}
"""Quantities that hold a fixed number of round trips wherever they occur."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """B − A, and the sum it comes from in words."""

    difference_ns: int
    by: str


def predict(quantity: str, a: Sequence[Sample], b: Sequence[Sample]) -> Prediction | None:
    """None where round trips do not determine the quantity, or where they are not known."""
    of_a, of_b = _round_trip_time(quantity, a), _round_trip_time(quantity, b)
    if of_a is None or of_b is None:
        return None
    return Prediction(difference_ns=of_b[0] - of_a[0], by=f"{of_b[1]} − {of_a[1]}")


def _round_trip_time(quantity: str, rows: Sequence[Sample]) -> tuple[int, str] | None:
    """Time that the round trips of one arm take, and how it was counted."""
    rtts = [row.rtt_ns for row in rows if row.rtt_ns is not None]
    if not rtts:
        return None
    rtt_ns = round(median(rtts))
    trips = _trips(quantity, rows)
    if trips is None:
        return None
    names = f"{trips:g} × {format_ms(rtt_ns)} ms"
    if quantity != "total":
        return round(trips * rtt_ns), names
    lookups = [row.durations_ns["dns"] for row in rows if "dns" in row.durations_ns]
    lookup_ns = round(median(lookups)) if len(lookups) * 2 > len(rows) else 0
    return round(trips * rtt_ns) + lookup_ns, f"({names} + dns {format_ms(lookup_ns)} ms)"


def _trips(quantity: str, rows: Sequence[Sample]) -> float | None:
    if quantity == "total":
        known = [row.round_trips for row in rows if row.round_trips is not None]
        return median(known) if known else None
    if quantity in _FROM_ROUND_TRIPS:
        return _FROM_ROUND_TRIPS[quantity]
    if quantity == "tls":
        known = [row.round_trips - 2 for row in rows if row.round_trips is not None and "tls" in row.durations_ns]
        return median(known) if known else None
    return None
