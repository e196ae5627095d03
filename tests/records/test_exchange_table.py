"""Questions about many exchanges, answered from records."""

from __future__ import annotations

from netdiag.records.exchange import Outcome
from netdiag.records.exchange_table import count_failed, outcome_counts, slowest
from tests.support.fabricated import analysis, exchange

ROWS = analysis(
    exchange("wait 10"),
    exchange("wait 30", outcome=Outcome.RESET),
    exchange("wait 30"),
    exchange("wait 20", outcome=Outcome.INCOMPLETE),
).exchanges


def test_the_slowest_come_first_and_equal_ones_in_order() -> None:
    assert [one.id for one in slowest(ROWS, 3)] == [1, 2, 3]
    assert slowest(ROWS, 0) == []
    assert len(slowest(ROWS, 99)) == 4


def test_outcomes_are_counted_and_absent_ones_left_out() -> None:
    assert outcome_counts(ROWS) == {Outcome.OK: 2, Outcome.RESET: 1, Outcome.INCOMPLETE: 1}
    assert count_failed(ROWS) == 1
    assert outcome_counts([]) == {}
