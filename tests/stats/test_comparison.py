"""Comparisons keep their promises: coverage, false alarms, power, and verdicts that follow from the interval alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from netdiag.stats.comparison import Verdict, adjust, compare, default_margin_ns, pairs_needed, verdict
from netdiag.stats.ranks import Shift, paired_shift

MS = 1_000_000


def shift(lo: float | None, estimate: float, hi: float | None) -> Shift:
    return Shift(n=20, estimate=estimate, lo=lo, hi=hi, p_value=0.01)


@pytest.mark.parametrize(
    ("lo", "estimate", "hi", "expected"),
    [
        (-60, -40, -25, Verdict.FASTER),
        (-30, -12, -2, Verdict.FASTER_TOO_LITTLE),
        (25, 40, 60, Verdict.SLOWER),
        (2, 12, 30, Verdict.SLOWER_TOO_LITTLE),
        (-9, 1, 8, Verdict.NO_DIFFERENCE),
        (-30, -5, 19, Verdict.CANNOT_TELL),
        (None, -50, None, Verdict.CANNOT_TELL),
        (0, 10, 15, Verdict.NO_DIFFERENCE),
    ],
)
def test_the_verdict_follows_from_interval_and_margin(lo, estimate, hi, expected):
    assert verdict(shift(lo, estimate, hi), margin=20) is expected


def test_two_equal_arms_raise_few_false_alarms():
    """A/A with drift and skew, paired: at most 5 % claim a direction (binomial slack for 200 runs)."""
    rng = np.random.default_rng(11)
    alarms = 0
    for _ in range(200):
        load = rng.lognormal(0, 0.3, 20)
        a, b = (600 * MS * load * rng.lognormal(0, 0.1, 20) for _ in range(2))
        result = compare("total", "a", a.round(), "b", b.round(), paired=True)
        alarms += result.verdict not in (Verdict.NO_DIFFERENCE, Verdict.CANNOT_TELL)
    assert alarms <= stats.binom.ppf(0.99, 200, 0.05)


def test_five_injected_milliseconds_are_found_at_the_promised_n():
    """σ_d = 6 ms, δ = 5 ms: 8.2·(6/5)² + 2 ≈ 14 pairs give about 80 % power."""
    rng = np.random.default_rng(12)
    n = 2 + pairs_needed(6.0, 5.0, 2.0, 2)
    assert n == 14
    found = 0
    for _ in range(300):
        result = paired_shift(rng.normal(5, 6, n))
        found += result.lo is not None and result.lo > 0
    assert found / 300 > 0.74


def test_below_six_pairs_no_number_of_pairs_can_be_too_small():
    for n in (2, 3, 4, 5):
        assert pairs_needed(0.1, 0.1, 20.0, n) == 6 - n


def test_the_margin_is_20_ms_or_five_percent():
    assert default_margin_ns(np.array([100.0 * MS])) == 20 * MS
    assert default_margin_ns(np.array([1000.0 * MS])) == 50 * MS


def test_an_empty_arm_tells_nothing_and_invents_nothing():
    result = compare("total", "a", [], "b", [1, 2], paired=False)
    assert (result.verdict, result.estimate_ns, result.lo_ns, result.pairs) == (Verdict.CANNOT_TELL, None, None, 0)


def test_pairs_must_be_pairs():
    with pytest.raises(ValueError, match="3 against 2"):
        compare("total", "a", [1, 2, 3], "b", [1, 2], paired=True)


def test_undecided_comparisons_say_how_many_pairs_they_need():
    rng = np.random.default_rng(5)
    a = 600 * MS * rng.lognormal(0, 0.4, 10)
    b = 600 * MS * rng.lognormal(0, 0.4, 10)
    result = compare("total", "a", a, "b", b, paired=True)
    assert result.verdict == Verdict.CANNOT_TELL
    assert result.pairs_needed is not None
    assert result.pairs_needed > 50


def test_the_primary_comparison_is_not_adjusted():
    rows = [
        compare(q, "a", [10, 20, 30, 40, 50, 60], "b", [11, 22, 33, 44, 55, 66], paired=True, primary=q == "wait")
        for q in ("wait", "tls", "tcp")
    ]
    wait, tls, _ = adjust(rows)
    assert wait.p_value_adjusted == wait.p_value
    assert tls.p_value_adjusted == pytest.approx(2 * tls.p_value)
