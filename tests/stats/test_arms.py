from __future__ import annotations

from dataclasses import replace

import pytest

from netdiag.records.exchange import Exchange, Outcome
from netdiag.records.stream import StreamTiming
from netdiag.stats.arms import compare_arms
from netdiag.stats.distribution import statistics
from tests.support.fabricated import exchange, ns

PROTOCOL = {"h1": "http/1.1", "h2": "h2"}


def trials(arm: str, waits_ms: list[float], *, first: int = 1) -> list[Exchange]:
    return [
        replace(
            exchange(f"send 0.1 | wait {wait} | transfer 1"),
            id=100 * len(arm) + i,
            arm=arm,
            trial=first + i,
            protocol=PROTOCOL[arm],
        )
        for i, wait in enumerate(waits_ms)
    ]


def test_a_shift_of_every_pair_is_found_and_the_baseline_is_the_first_name() -> None:
    a = [100 + (7 * i) % 5 for i in range(10)]
    rows = [*trials("h2", [w + 50 for w in a]), *trials("h1", a)]
    found = {c.quantity: c for c in compare_arms(rows, statistics(rows))}
    total = found["total"]
    assert (total.arm_a, total.arm_b, total.pairs, total.primary) == ("h1", "h2", 10, True)
    assert total.estimate_ns == ns(50)
    assert total.verdict == "slower"
    assert found["transfer"].estimate_ns == 0
    assert not found["wait"].primary


def test_only_trials_that_both_arms_have_are_pairs() -> None:
    rows = [*trials("h1", [10, 20, 30]), *trials("h2", [15, 25], first=2)]
    found = {c.quantity: c for c in compare_arms(rows, statistics(rows))}
    assert found["wait"].pairs == 2
    assert found["wait"].estimate_ns == ns(-5)


def test_what_is_not_counted_is_no_pair() -> None:
    rows = [*trials("h1", [10, 20, 30]), *trials("h2", [10, 20, 30])]
    rows[4] = replace(rows[4], outcome=Outcome.RESET, status=None)
    assert {c.pairs for c in compare_arms(rows, statistics(rows))} == {2}


@pytest.mark.parametrize(
    "rows", [[], trials("h1", [1, 2, 3]), [*trials("h1", [1]), *trials("h2", [1])], [exchange("wait 1")] * 3]
)
def test_nothing_to_compare(rows: list[Exchange]) -> None:
    assert compare_arms(rows, statistics(rows)) == ()


def timing(first_token_ms: float) -> StreamTiming:
    return StreamTiming(
        api="openai-chat",
        first_byte_ns=None,
        first_event_ns=None,
        first_token_ns=ns(first_token_ms),
        first_visible_ns=None,
        last_content_ns=None,
        logical_end_ns=None,
        events=9,
        token_events=8,
    )


def test_of_streams_the_first_token_is_the_primary_quantity() -> None:
    def streamed(arm: str, tokens_ms: list[float]) -> list[Exchange]:
        rows = trials(arm, [50.0] * len(tokens_ms))
        return [replace(row, stream=timing(ms)) for row, ms in zip(rows, tokens_ms, strict=True)]

    rows = [*streamed("h1", [60, 61, 62, 63, 64, 65]), *streamed("h2", [70, 71, 72, 73, 74, 75])]
    assert [c.quantity for c in compare_arms(rows, statistics(rows)) if c.primary] == ["first_token"]
    mixed = [*streamed("h1", [60, 61, 62]), *trials("h2", [50.0] * 3)]
    assert [c.quantity for c in compare_arms(mixed, statistics(mixed)) if c.primary] == ["total"]
