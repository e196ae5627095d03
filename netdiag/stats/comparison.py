"""Two arms: which is faster, by how much, with what certainty (the four verdicts), and how many more pairs a verdict needs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from netdiag.records.statistics import Comparison
from netdiag.stats.ranks import Samples, Shift, holm, paired_shift, unpaired_shift

MARGIN_FLOOR_NS = 20_000_000
MARGIN_SHARE = 0.05
"""The default margin is the larger of 20 ms and 5 % of the baseline's median."""

_DETECT = 8.2
_EQUIVALENCE = 11.0
"""Pairs ≈ factor · (sd of the paired differences / effect)²: 80 % power to detect, or to claim equivalence (Wilcoxon, α = .05)."""
_SMALL_SAMPLE = 2
"""The factors are large-sample ones; by simulation two pairs more restore 80 % at n around 12."""


_FEWEST = 6
"""With fewer pairs there is no two-sided 95 % signed-rank interval at all."""


class Verdict(StrEnum):
    """B against A by the 95 % interval of B − A. ``p > .05`` is never "no difference"."""

    FASTER = "faster"
    FASTER_TOO_LITTLE = "faster-but-too-little"
    SLOWER = "slower"
    SLOWER_TOO_LITTLE = "slower-but-too-little"
    NO_DIFFERENCE = "no-difference-that-matters"
    CANNOT_TELL = "cannot-tell"


def default_margin_ns(baseline_ns: Samples) -> int:
    """The smallest difference worth acting on, from the baseline's median."""
    return max(MARGIN_FLOOR_NS, round(MARGIN_SHARE * float(np.median(baseline_ns))))


def verdict(shift: Shift, margin: float) -> Verdict:
    """One of four verdicts, two of them with a direction."""
    if shift.lo is None or shift.hi is None:
        return Verdict.CANNOT_TELL
    if shift.hi < 0:
        return Verdict.FASTER if shift.estimate <= -margin else Verdict.FASTER_TOO_LITTLE
    if shift.lo > 0:
        return Verdict.SLOWER if shift.estimate >= margin else Verdict.SLOWER_TOO_LITTLE
    inside = -margin < shift.lo and shift.hi < margin
    return Verdict.NO_DIFFERENCE if inside else Verdict.CANNOT_TELL


def pairs_needed(spread: float, estimate: float, margin: float, n: int) -> int | None:
    """About how many pairs beyond ``n`` a verdict needs: to detect the estimate where it is at least the margin, else to show equivalence.

    None when the spread is not known (n < 2).
    """
    if n < 2 or margin <= 0:
        return None
    effect, factor = (abs(estimate), _DETECT) if abs(estimate) >= margin else (margin - abs(estimate) / 2, _EQUIVALENCE)
    return max(1, _FEWEST - n, math.ceil(factor * (spread / effect) ** 2) + _SMALL_SAMPLE - n)


def compare(
    quantity: str,
    arm_a: str,
    a_ns: Sequence[int],
    arm_b: str,
    b_ns: Sequence[int],
    *,
    paired: bool,
    margin_ns: int | None = None,
    primary: bool = False,
    predicted_ns: int | None = None,
    predicted_by: str | None = None,
) -> Comparison:
    """B − A for one quantity. With ``paired`` the sequences are equally long and position i of both is one pair.

    Raises ``ValueError`` when paired samples differ in length. With an empty arm the verdict is ``cannot-tell`` and every number None.
    """
    a, b = np.asarray(a_ns, dtype=np.float64), np.asarray(b_ns, dtype=np.float64)
    if paired and len(a) != len(b):
        raise ValueError(f"{len(a)} against {len(b)} trials cannot be pairs")
    margin = margin_ns if margin_ns is not None else (default_margin_ns(a) if len(a) else MARGIN_FLOOR_NS)
    blank = Comparison(
        quantity=quantity, arm_a=arm_a, arm_b=arm_b, pairs=min(len(a), len(b)), paired=paired, estimate_ns=None, lo_ns=None,
        hi_ns=None, margin_ns=margin, verdict=Verdict.CANNOT_TELL, predicted_ns=predicted_ns, predicted_by=predicted_by, primary=primary,
    )  # fmt: skip
    if not len(a) or not len(b):
        return blank
    shift = paired_shift(b - a) if paired else unpaired_shift(a, b)
    result = verdict(shift, margin)
    more = (
        pairs_needed(_spread(a, b, paired), shift.estimate, margin, shift.n) if result is Verdict.CANNOT_TELL else None
    )
    return dataclasses.replace(
        blank,
        estimate_ns=round(shift.estimate),
        lo_ns=None if shift.lo is None else round(shift.lo),
        hi_ns=None if shift.hi is None else round(shift.hi),
        verdict=result,
        p_value=shift.p_value,
        pairs_needed=more,
        points_ns=tuple(round(point) for point in (b - a).tolist()) if paired and shift.lo is None else (),
    )


def adjust(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Holm's adjustment over the exploratory comparisons; the primary one keeps its own p-value."""
    exploratory = [None if c.primary else c.p_value for c in comparisons]
    adjusted = holm(exploratory)
    return tuple(
        dataclasses.replace(c, p_value_adjusted=c.p_value if c.primary else p)
        for c, p in zip(comparisons, adjusted, strict=True)
    )


def _spread(a: Samples, b: Samples, paired: bool) -> float:
    if min(len(a), len(b)) < 2:
        return math.nan
    return float(np.std(b - a, ddof=1)) if paired else float(np.sqrt(np.var(a, ddof=1) + np.var(b, ddof=1)))
