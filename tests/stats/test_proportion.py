"""Error rates and quantile goals."""

from __future__ import annotations

import pytest

from netdiag.stats.proportion import lower_bound, newcombe, trials_needed, upper_bound


@pytest.mark.parametrize(("failures", "n"), [(0, 299), (1, 473), (2, 628), (3, 773), (4, 913), (5, 1049)])
def test_trials_that_show_less_than_one_percent(failures, n):
    assert trials_needed(0.01, failures) == n


def test_bounds_enclose_the_observed_rate():
    assert lower_bound(3, 50) < 0.06 < upper_bound(3, 50)
    assert lower_bound(0, 50) == 0.0
    assert upper_bound(50, 50) == 1.0


def test_newcombe_reproduces_the_published_example():
    """56/70 against 48/80: 0.0524 to 0.3339 (Newcombe 1998, table II a, method 10)."""
    lo, hi = newcombe(48, 80, 56, 70)
    assert (lo, hi) == (pytest.approx(0.0524, abs=5e-4), pytest.approx(0.3339, abs=5e-4))
