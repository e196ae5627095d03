"""Calls made at once are one trial: medians over them, and the time until the last one was done."""

from __future__ import annotations

import json
from dataclasses import replace

from netdiag.export.json import dumps
from netdiag.stats.arms import compare_samples
from netdiag.stats.calls import whole_calls
from netdiag.stats.distribution import statistics
from netdiag.stats.samples import by_arm, samples_of, samples_of_document
from tests.support.fabricated import analysis, connection, exchange, ns


def batches(arm: str, waits_ms: tuple[float, ...], trials: int, first_id: int):  # type: ignore[no-untyped-def]
    rows = []
    for trial in range(1, trials + 1):
        for k, wait_ms in enumerate(waits_ms):
            number = first_id + len(rows)
            row = exchange(f"send 1 | wait {wait_ms} | transfer 1", id=number, at_ms=1_000 * trial + k)
            protocol = "h2" if arm.startswith("h2") else "http/1.1"
            rows.append(replace(row, arm=arm, trial=trial, call_id=number, protocol=protocol))
    return rows


def test_a_batch_is_one_row_with_its_median_and_its_end() -> None:
    rows = batches("h2+k3", (10, 30, 20), 2, 0)
    whole = replace(analysis(exchanges=rows, connections=(connection(),)), statistics=statistics(rows))
    found = samples_of(whole)
    assert [(s.trial, s.durations_ns["wait"], s.durations_ns["batch"]) for s in found] == [
        (1, ns(20), ns(33)),
        (2, ns(20), ns(33)),
    ]
    from_document = samples_of_document(json.loads(dumps(whole)))
    assert [s.durations_ns["batch"] for s in from_document] == [ns(33), ns(33)]


def test_attempts_of_one_call_are_no_batch() -> None:
    rows = [replace(row, call_id=row.trial) for row in batches("h1", (10, 30), 2, 0)]
    whole = replace(analysis(exchanges=rows, connections=(connection(),)), statistics=statistics(rows))
    found = samples_of(whole)
    assert [s.durations_ns["wait"] for s in found] == [
        ns(30),
        ns(30),
    ]  # the one that answered; what came before it was a hop
    assert all("batch" not in s.durations_ns for s in found)
    assert [s.durations_ns["call"] for s in found] == [c.total_ns for c in whole_calls(rows)]


def test_two_ways_to_make_a_batch_are_compared_by_their_last_call() -> None:
    rows = [*batches("h1+k3", (10, 10, 60), 8, 0), *batches("h2+k3", (30, 30, 30), 8, 24)]
    whole = replace(analysis(exchanges=rows, connections=(connection(),)), statistics=statistics(rows))
    arms = by_arm(samples_of(whole))
    found = {c.quantity: c for c in compare_samples(arms["h1+k3"], arms["h2+k3"])}
    assert found["batch"].estimate_ns == ns(-30)
    assert found["wait"].estimate_ns == ns(20)
    assert found["batch"].pairs == 8
