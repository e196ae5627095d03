"""The call that stands for others."""

from __future__ import annotations

from netdiag.records.exchange import Outcome
from netdiag.stats.medoid import medoid
from tests.support.fabricated import exchange


def test_the_one_closest_to_the_median_of_every_phase() -> None:
    calls = [
        exchange(f"wait {wait} | transfer {transfer}") for wait, transfer in ((10, 90), (50, 50), (52, 48), (90, 10))
    ]
    assert medoid(calls) is calls[1]


def test_a_phase_that_a_call_lacks_counts_as_nothing() -> None:
    calls = [exchange("dns 500 | wait 50"), exchange("wait 50"), exchange("wait 51")]
    assert medoid(calls) is calls[1]


def test_failures_stand_for_nothing() -> None:
    failed = exchange("wait 50", status=None, outcome=Outcome.RESET)
    assert medoid([failed]) is None
    assert medoid([]) is None
    good = exchange("wait 900")
    assert medoid([failed, good, failed]) is good
