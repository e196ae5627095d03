"""How accurate netdiag is where the truth is exact: every bundled scenario on tier T0, swept causes, and changes that must change nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from netdiag import api
from netdiag.lab.metamorphic import changes
from netdiag.lab.scenario import bundled, bundled_names, varied
from netdiag.lab.score import DEFECTIVE, TOLERANCE_NS, respond, run, score, with_seed

ACCURATE = [name for name in bundled_names() if name not in DEFECTIVE]
SWEPT = [name for name in ACCURATE if bundled(name).cause is not None]
MANY_SEEDS = tuple(range(1, 21))


@pytest.mark.parametrize("name", ACCURATE)
def test_every_phase_is_right(name: str) -> None:
    result = score([bundled(name)], api.analyze)
    assert result.outliers(TOLERANCE_NS) == []
    assert result.wrong_sums == []


@pytest.mark.parametrize("name", DEFECTIVE)
def test_a_defective_capture_still_adds_up_and_claims_no_more_than_it_can(name: str) -> None:
    result = score([bundled(name)], api.analyze)
    assert result.wrong_sums == []
    analysis = run(bundled(name), api.analyze).analysis
    assert name == "clock-step" or analysis.anomalies or any(not c.complete for c in analysis.connections)


@pytest.mark.parametrize("name", SWEPT)
def test_the_phase_rises_by_what_was_injected_and_no_other_moves(name: str) -> None:
    response = respond(bundled(name), api.analyze, doses=(0.0, 1.0, 4.0))
    assert response.is_monotone
    assert response.share_in_right_phase is not None
    assert response.share_in_right_phase >= 0.95
    assert response.strays_ns <= TOLERANCE_NS
    largest = response.doses[-1]
    per_exchange = largest.found_rise_ns[response.cause_phase] / largest.injected_ns
    repeats = round(per_exchange)
    assert repeats >= 1, f"{per_exchange} of the injected time arrived"
    assert per_exchange == pytest.approx(repeats, rel=0.01)


@pytest.mark.parametrize("name", ACCURATE)
def test_changes_of_the_capture_that_change_no_phase(name: str) -> None:
    assert list(changes(bundled(name), api.analyze)) == []


def test_without_keys_the_first_record_is_not_taken_for_the_answer() -> None:
    """Session tickets come 120 ms before the answer: the naive rule is off by that much."""
    result = score([bundled("without-keys")], api.analyze)
    waits = [e for e in result.errors if e.phase == "wait"]
    assert [e.error_ns for e in waits] == [0, 0]


@pytest.mark.parametrize(
    "name", ["clean-h1", "tls12", "tls-retry", "reused-connection", "slow-path", "syn-lost", "at-server"]
)
def test_without_keys_the_truth_lies_within_the_bounds(name: str) -> None:
    keyless = varied(bundled(name), {"capture.secrets": "none"})
    assert score([keyless], api.analyze).share_within_bounds == 1.0


def within_bounds(seeds: Sequence[int]) -> tuple[int, list[tuple[str, int, int]]]:
    """All scenarios as if there were no keys: how many exchanges, and those with a phase whose stated bounds do not hold the truth."""
    count, broken = 0, []
    for name in ACCURATE:
        for place, seed in enumerate(seeds):
            chosen = varied(with_seed(bundled(name), seed, vary=place > 0), {"capture.secrets": "none"})
            told = score([chosen], api.analyze, seeds=(seed,)).errors
            found = {e.exchange for e in told if e.within_bounds is not None}
            count += len(found)
            broken += [(name, seed, i) for i in found if any(e.within_bounds is False for e in told if e.exchange == i)]
    return count, broken


def test_without_keys_all_stated_bounds_hold() -> None:
    count, broken = within_bounds((1,))
    assert count >= 70
    assert broken == []


@pytest.mark.slow
def test_without_keys_bounds_hold_in_99_of_100_exchanges_at_scale() -> None:
    count, broken = within_bounds(MANY_SEEDS)
    assert count > 1000
    assert len(broken) <= count // 100, broken


def test_without_keys_waiting_for_100_is_a_phase() -> None:
    result = score([varied(bundled("continue"), {"capture.secrets": "none"})], api.analyze)
    assert {e.phase: e.error_ns for e in result.errors} == dict.fromkeys(
        ("tcp", "tls", "send", "continue", "wait", "transfer", "total"), 0
    )


def test_without_keys_the_final_chunk_is_no_key_update() -> None:
    result = score([varied(bundled("buffering-hop"), {"capture.secrets": "none"})], api.analyze)
    assert [e.error_ns for e in result.errors if e.phase == "transfer"] == [0]


@pytest.mark.slow
def test_at_scale_with_numbers_that_nobody_chose() -> None:
    result = score([bundled(name) for name in ACCURATE], api.analyze, seeds=MANY_SEEDS)
    assert result.runs == len(ACCURATE) * len(MANY_SEEDS)
    assert result.outliers(TOLERANCE_NS) == []
    assert result.wrong_sums == []
