"""The median. (The standard library's module for it loads decimal and random numbers, half as long as an analysis of a small capture takes.)"""

from __future__ import annotations

from collections.abc import Iterable


def median(values: Iterable[float]) -> float:
    """The middle value, or the mean of the middle two. ``values`` must not be empty."""
    ordered = sorted(values)
    half, odd = divmod(len(ordered), 2)
    return ordered[half] if odd else (ordered[half - 1] + ordered[half]) / 2
