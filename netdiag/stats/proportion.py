"""Error rates and quantile goals: both are binomial questions, with exact one-sided bounds (Clopper and Pearson 1934)."""

from __future__ import annotations

from scipy import stats


def upper_bound(failures: int, n: int, *, level: float = 0.95) -> float:
    """The share below which the true failure rate lies with confidence ``level``; 1.0 without trials."""
    return 1.0 if failures >= n else float(stats.beta.ppf(level, failures + 1, n - failures))


def lower_bound(failures: int, n: int, *, level: float = 0.95) -> float:
    """The share above which the true failure rate lies with confidence ``level``; 0.0 without failures."""
    return 0.0 if failures == 0 else float(stats.beta.ppf(1 - level, failures, n - failures + 1))


def trials_needed(share: float, failures: int = 0, *, level: float = 0.95, most: int = 1_000_000) -> int | None:
    """Trials after which ``failures`` failures show a rate below ``share``: 299 for 1 % without a failure. None beyond ``most``."""
    low, high = failures + 1, most
    if upper_bound(failures, high, level=level) > share:
        return None
    while low < high:
        middle = (low + high) // 2
        if upper_bound(failures, middle, level=level) < share:
            high = middle
        else:
            low = middle + 1
    return low


def newcombe(failures_a: int, n_a: int, failures_b: int, n_b: int, *, level: float = 0.95) -> tuple[float, float]:
    """Interval of rate B − rate A by Newcombe's hybrid of two Wilson intervals (Statistics in Medicine 17, 1998, method 10)."""
    p_a, p_b = failures_a / n_a, failures_b / n_b
    lo_a, hi_a = _wilson(failures_a, n_a, level)
    lo_b, hi_b = _wilson(failures_b, n_b, level)
    difference = p_b - p_a
    down = ((p_b - lo_b) ** 2 + (hi_a - p_a) ** 2) ** 0.5
    up = ((hi_b - p_b) ** 2 + (p_a - lo_a) ** 2) ** 0.5
    return difference - down, difference + up


def _wilson(failures: int, n: int, level: float) -> tuple[float, float]:
    interval = stats.binomtest(failures, n).proportion_ci(confidence_level=level, method="wilson")
    return float(interval.low), float(interval.high)
