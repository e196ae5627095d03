"""Rank statistics of differences, against scipy and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from netdiag.stats.ranks import holm, paired_shift, unpaired_shift


def test_below_six_pairs_no_interval_exists():
    assert paired_shift(np.array([1.0, 2, 3, 4, 5])).lo is None
    assert paired_shift(np.array([1.0, 2, 3, 4, 5, 6])).lo == 1.0


def test_the_signed_rank_interval_inverts_scipys_exact_test():
    """Just inside the interval the test does not reject, just outside it does."""
    differences = np.random.default_rng(3).lognormal(0, 0.8, 14) - 1.1
    result = paired_shift(differences)
    assert result.lo is not None
    assert result.hi is not None
    for edge, outward in ((result.lo, -1e-9), (result.hi, 1e-9)):
        assert stats.wilcoxon(differences - (edge - outward), method="exact").pvalue > 0.05
        assert stats.wilcoxon(differences - (edge + outward), method="exact").pvalue <= 0.05


def test_the_rank_sum_interval_inverts_scipys_exact_test():
    rng = np.random.default_rng(4)
    a, b = rng.lognormal(0, 0.5, 9), rng.lognormal(0.3, 0.5, 11)
    result = unpaired_shift(a, b)
    assert result.lo is not None
    assert result.hi is not None
    for edge, outward in ((result.lo, -1e-9), (result.hi, 1e-9)):
        assert stats.mannwhitneyu(b - (edge - outward), a, method="exact").pvalue > 0.05
        assert stats.mannwhitneyu(b - (edge + outward), a, method="exact").pvalue <= 0.05


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=30), st.floats(-1e5, 1e5))
def test_adding_a_constant_moves_estimate_and_interval_by_it(differences, constant):
    plain, moved = paired_shift(np.array(differences)), paired_shift(np.array(differences) + constant)
    assert moved.estimate == pytest.approx(plain.estimate + constant, abs=1e-3)
    assert moved.lo == pytest.approx(plain.lo + constant, abs=1e-3)


def test_nominal_95_percent_intervals_cover_on_skewed_latencies():
    rng = np.random.default_rng(13)
    covered = 0
    for _ in range(300):
        result = paired_shift(rng.lognormal(0, 0.6, 12) - rng.lognormal(0, 0.6, 12))
        covered += result.lo <= 0 <= result.hi
    assert covered / 300 > 0.93


def test_holm_agrees_with_hand_calculation():
    assert holm([0.01, None, 0.04, 0.03]) == [pytest.approx(0.03), None, pytest.approx(0.06), pytest.approx(0.06)]
