"""What a difference should be, from the round trips of two arms."""

from __future__ import annotations

from netdiag.stats.prediction import predict
from netdiag.stats.samples import Sample
from netdiag.units import NS_PER_MS


def arm(
    name: str, *, rtt_ms: float | None = 20, round_trips: int | None = 3, n: int = 5, **durations: float
) -> list[Sample]:
    made = {quantity: round(ms * NS_PER_MS) for quantity, ms in durations.items()}
    rtt_ns = None if rtt_ms is None else round(rtt_ms * NS_PER_MS)
    return [Sample(arm=name, trial=i, durations_ns=made, rtt_ns=rtt_ns, round_trips=round_trips) for i in range(n)]


def test_a_saved_round_trip_is_worth_one() -> None:
    found = predict("total", arm("a", round_trips=3), arm("b", round_trips=2))
    assert found is not None
    assert found.difference_ns == -20 * NS_PER_MS
    assert found.by == "(2 × 20.0 ms + dns 0.0 ms) − (3 × 20.0 ms + dns 0.0 ms)"


def test_lookups_count_where_most_calls_had_one() -> None:
    few = [*arm("a", n=1, dns=30), *arm("a", n=4)]
    found = predict("total", few, arm("b", dns=30))
    assert found is not None
    assert found.difference_ns == 30 * NS_PER_MS


def test_tls_is_what_is_left_of_the_round_trips() -> None:
    found = predict("tls", arm("a", round_trips=4, tls=40), arm("b", round_trips=3, tls=20))
    assert found is not None
    assert (found.difference_ns, found.by) == (-20 * NS_PER_MS, "1 × 20.0 ms − 2 × 20.0 ms")
    assert predict("tls", arm("a"), arm("b")) is None  # no TLS in either


def test_quantities_with_a_fixed_number_of_round_trips() -> None:
    found = predict("tcp", arm("a", rtt_ms=10), arm("b", rtt_ms=50))
    assert found is not None
    assert found.difference_ns == 40 * NS_PER_MS


def test_what_round_trips_do_not_determine_is_not_predicted() -> None:
    assert predict("transfer", arm("a"), arm("b")) is None
    assert predict("total", arm("a", rtt_ms=None), arm("b")) is None
    assert predict("total", arm("a", round_trips=None), arm("b")) is None
    assert predict("total", [], arm("b")) is None
