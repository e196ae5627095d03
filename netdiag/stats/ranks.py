"""Rank statistics of differences: Hodges–Lehmann estimates with the intervals that belong to them.

Why these: on skewed latencies their 95 % intervals keep their coverage from n = 8 on, where bootstraps of the mean and median fall to
85–90 %. The interval of the paired estimate inverts the Wilcoxon signed-rank test, that of the unpaired one the Mann–Whitney test
(Hollander and Wolfe, Nonparametric Statistical Methods, sections 3.3 and 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Samples = NDArray[np.float64]

_EXACT_UP_TO = 50
"""Pairs (or products of sample sizes / 50) up to which the null distribution is counted out; beyond, the normal approximation is closer
than the data deserve."""
_MOST_FOR_ALL_DIFFERENCES = 3000


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A typical difference. ``lo`` and ``hi`` are None when no two-sided interval of that level exists (paired n < 6)."""

    n: int
    estimate: float
    lo: float | None
    hi: float | None
    p_value: float | None


def paired_shift(differences: Samples, *, level: float = 0.95) -> Shift:
    """Hodges–Lehmann estimate of paired differences: the median of all Walsh averages, with the signed-rank interval.

    Raises ``ValueError`` when there are no differences.
    """
    n = len(differences)
    if n == 0:
        raise ValueError("no differences")
    walsh = _walsh_averages(differences)
    rank = _signed_rank_critical(n, level)
    lo, hi = (None, None) if rank is None else (float(walsh[rank]), float(walsh[-1 - rank]))
    return Shift(n=n, estimate=float(np.median(walsh)), lo=lo, hi=hi, p_value=_signed_rank_p(differences))


def unpaired_shift(a: Samples, b: Samples, *, level: float = 0.95) -> Shift:
    """Hodges–Lehmann shift of ``b`` against ``a``: the median of all differences b − a, with the Mann–Whitney interval.

    Raises ``ValueError`` when either sample is empty.
    """
    if len(a) == 0 or len(b) == 0:
        raise ValueError("an empty sample")
    differences = np.sort(np.subtract.outer(b, a).ravel())
    rank = _rank_sum_critical(len(a), len(b), level)
    lo, hi = (None, None) if rank is None else (float(differences[rank]), float(differences[-1 - rank]))
    p_value = float(stats.mannwhitneyu(b, a, alternative="two-sided").pvalue)
    return Shift(n=min(len(a), len(b)), estimate=float(np.median(differences)), lo=lo, hi=hi, p_value=p_value)


def holm(p_values: list[float | None]) -> list[float | None]:
    """Holm's step-down adjustment of several p-values; None stays None."""
    known = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    running = 0.0
    for position, (p, i) in enumerate(known):
        running = max(running, min(1.0, p * (len(known) - position)))
        adjusted[i] = running
    return adjusted


def _walsh_averages(differences: Samples) -> Samples:
    """All (d_i + d_j) / 2 with i <= j, sorted."""
    if len(differences) > _MOST_FOR_ALL_DIFFERENCES:  # 4.5 million averages are enough to place a median
        differences = differences[np.linspace(0, len(differences) - 1, _MOST_FOR_ALL_DIFFERENCES).astype(int)]
    i, j = np.triu_indices(len(differences))
    return np.sort((differences[i] + differences[j]) / 2)


def _signed_rank_p(differences: Samples) -> float | None:
    if not np.any(differences):
        return 1.0
    sizes = np.abs(differences)
    plain = sizes.all() and len(np.unique(sizes)) == len(sizes) <= _EXACT_UP_TO
    method = "exact" if plain else "asymptotic"  # scipy's own choice enumerates 2^n permutations where there are ties
    return float(stats.wilcoxon(differences, zero_method="pratt", method=method).pvalue)


@lru_cache(maxsize=256)
def _signed_rank_critical(n: int, level: float) -> int | None:
    """How many Walsh averages lie outside the interval on each side; None when even the widest interval has less than ``level``."""
    tail = (1 - level) / 2
    if n > _EXACT_UP_TO:
        mean, variance = n * (n + 1) / 4, n * (n + 1) * (2 * n + 1) / 24
        return max(0, int(np.floor(mean + stats.norm.ppf(tail) * np.sqrt(variance))))
    counts = np.ones(1)
    for rank in range(1, n + 1):  # number of subsets of the ranks 1..n by their sum
        grown = np.zeros(len(counts) + rank)
        grown[: len(counts)] += counts
        grown[rank:] += counts
        counts = grown
    return _outside(np.cumsum(counts) / 2.0**n, tail)


@lru_cache(maxsize=1024)
def _rank_sum_critical(m: int, n: int, level: float) -> int | None:
    """How many of the m·n differences lie outside the interval on each side."""
    tail = (1 - level) / 2
    if m * n > _EXACT_UP_TO**2:
        deviation = np.sqrt(m * n * (m + n + 1) / 12)
        return max(0, int(np.floor(m * n / 2 + stats.norm.ppf(tail) * deviation)))
    counts = _rank_sum_counts(m, n)
    return _outside(np.cumsum(counts) / counts.sum(), tail)


def _rank_sum_counts(m: int, n: int) -> Samples:
    """How many arrangements give U = 0, 1, … m·n: the coefficients of the Gaussian binomial."""
    counts = np.zeros(m * n + 1)
    counts[0] = 1
    for i in range(1, m + 1):
        for u in range(m * n, n + i - 1, -1):  # times (1 − q^(n+i))
            counts[u] -= counts[u - n - i]
        for u in range(i, m * n + 1):  # divided by (1 − q^i)
            counts[u] += counts[u - i]
    return counts


def _outside(cumulative: Samples, tail: float) -> int | None:
    below = int(np.searchsorted(cumulative, tail, side="right"))
    return below - 1 if below > 0 else None
