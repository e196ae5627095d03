"""Two arms against each other: every pair's difference with the margin that matters, and both distributions with their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from netdiag.palette import FAILURE, INK, MUTED
from netdiag.plot.shapes import evidence_line, headline, titles
from netdiag.plot.style import WIDTH_IN, Picture, TimeUnit, hue, new_picture, quiet_axes, settings, thousands
from netdiag.records.analysis import Analysis
from netdiag.records.labels import arm_name
from netdiag.records.statistics import Comparison
from netdiag.records.verdict_words import VERDICTS
from netdiag.stats.proportion import lower_bound, upper_bound
from netdiag.stats.samples import Sample, by_arm, samples_of

_ROW_IN = 0.46
_LEFT_IN, _RIGHT_IN = 1.25, 4.05
_LAST = ("first_event", "first_token", "first_visible", "total")
_ARM_HUES = (hue("send"), hue("tcp"), hue("wait"), hue("tls"), hue("dns"))
_NEEDED = ((99, 299), (95, 59), (90, 29), (50, 6))
"""Percentile, and the fewest calls with which a 95 % interval for it exists."""
_BOTH_TAILS = 0.975


def differences(analysis: Analysis, arm_a: str | None = None, arm_b: str | None = None) -> Picture:
    """Every pair's difference B − A as a dot, the typical one with its interval, the margin as a band, and the verdict.

    ``arm_a`` and ``arm_b`` choose one comparison of several; the first is taken otherwise. Raises ``KeyError`` without a paired one.
    """
    rows = [c for c in analysis.comparisons if c.paired and arm_a in (None, c.arm_a) and arm_b in (None, c.arm_b)]
    if not rows:
        raise KeyError("no paired comparison: it takes two arms of one probe with at least two trials each")
    rows = [c for c in rows if (c.arm_a, c.arm_b) == (rows[0].arm_a, rows[0].arm_b)]
    rows.sort(key=lambda c: _LAST.index(c.quantity) + 1 if c.quantity in _LAST else 0)
    arms = by_arm([s for s in samples_of(analysis) if s.trial is not None])
    with settings():
        return _draw_differences(analysis, rows, arms)


def _draw_differences(analysis: Analysis, rows: Sequence[Comparison], arms: dict[str, list[Sample]]) -> Picture:
    first = rows[0]
    pairs = {c.quantity: _pair_differences(c.quantity, arms[c.arm_a], arms[c.arm_b]) for c in rows}
    height = 1.55 + _ROW_IN * len(rows)
    picture = new_picture(height)
    axes = picture.add_axes(
        (_LEFT_IN / WIDTH_IN, 0.65 / height, 1 - (_LEFT_IN + _RIGHT_IN) / WIDTH_IN, _ROW_IN * len(rows) / height)
    )
    values = [abs(v) for row in pairs.values() for v in row] + [c.margin_ns for c in rows]
    unit = TimeUnit(max(values))
    quiet_axes(axes)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(-1.06 * unit.of(max(values)), 1.06 * unit.of(max(values)))
    axes.xaxis.set_major_formatter(thousands)
    axes.axvline(0, color=INK, linewidth=0.9, zorder=2)
    axes.set_yticks(range(len(rows)), [c.quantity.replace("_", " ") for c in rows])
    axes.set_xlabel(
        f"{arm_name(first.arm_b)} minus {arm_name(first.arm_a)} ({unit.name}): left of 0, {arm_name(first.arm_b)} is faster"
    )
    for y, comparison in enumerate(rows):
        _difference_row(axes, y, comparison, pairs[comparison.quantity], unit)
    for label, comparison in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_fontweight("bold" if comparison.primary else "normal")
    titles(
        picture,
        f"{arm_name(first.arm_b)} against {arm_name(first.arm_a)} · {headline(analysis, analysis.exchanges)}",
        evidence_line(analysis)
        + " · dots: pairs; bar: typical difference, 95 % interval; grey: the margin that matters",
    )
    return picture


def _pair_differences(quantity: str, a: Sequence[Sample], b: Sequence[Sample]) -> list[int]:
    """In the order of the trials that both have."""
    of_b = {s.trial: s.durations_ns.get(quantity) for s in b}
    found = []
    for sample in a:
        mine, other = sample.durations_ns.get(quantity), of_b.get(sample.trial)
        if mine is not None and other is not None:
            found.append(other - mine)
    return found


def _difference_row(axes: Any, y: int, c: Comparison, values: Sequence[int], unit: TimeUnit) -> None:
    margin = unit.of(c.margin_ns)
    axes.fill_betweenx([y - 0.42, y + 0.42], -margin, margin, color=MUTED, alpha=0.13, linewidth=0, zorder=1)
    colour = hue(c.quantity) if c.quantity not in _LAST else INK
    heights = [y + 0.24 * (((5 * i) % 7) / 3 - 1) for i in range(len(values))]
    axes.scatter([unit.of(v) for v in values], heights, s=15, c=colour, alpha=0.6, linewidths=0, zorder=3)
    if c.estimate_ns is not None:
        x = unit.of(c.estimate_ns)
        axes.plot([x, x], [y - 0.34, y + 0.34], color=INK, linewidth=2.0, zorder=5)
    if c.lo_ns is not None and c.hi_ns is not None:
        axes.plot(
            [unit.of(c.lo_ns), unit.of(c.hi_ns)],
            [y, y],
            color=INK,
            linewidth=3.2,
            alpha=0.75,
            zorder=4,
            solid_capstyle="butt",
        )
    axes.annotate(
        _words(c, unit),
        (1, y),
        xycoords=("axes fraction", "data"),
        xytext=(8, 0),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        annotation_clip=False,
    )


def _words(c: Comparison, unit: TimeUnit) -> str:
    if c.estimate_ns is None:
        return "no pair"
    interval = "" if c.lo_ns is None or c.hi_ns is None else f" [{_signed(c.lo_ns, unit)}, {_signed(c.hi_ns, unit)}]"
    needed = f", about {c.pairs_needed} more pairs" if c.pairs_needed and c.verdict == "cannot-tell" else ""
    return f"{_signed(c.estimate_ns, unit)}{interval} {unit.name} · {VERDICTS.get(c.verdict, c.verdict)}{needed}"


def _signed(duration_ns: int, unit: TimeUnit) -> str:
    return f"{unit.of(duration_ns):+.1f}".replace("-", "−")


# -- distribution functions ----------------------------------------------------------------------------------------------------------


def ecdf(analysis: Analysis, quantity: str = "total", *, goal_ns: int | None = None) -> Picture:
    """The share of calls that took at most so long, per arm, with a 95 % band; a goal as a line.

    Raises ``KeyError`` when no counted call has the quantity (``total``, ``wait``, ``first_token`` …).
    """
    arms = {
        arm: sorted(s.durations_ns[quantity] for s in rows if quantity in s.durations_ns)
        for arm, rows in by_arm(samples_of(analysis)).items()
    }
    arms = {arm: values for arm, values in arms.items() if values}
    if not arms:
        raise KeyError(f"no counted call has {quantity!r}")
    with settings():
        return _draw_ecdf(analysis, arms, quantity, goal_ns)


def _draw_ecdf(analysis: Analysis, arms: dict[str, list[int]], quantity: str, goal_ns: int | None) -> Picture:
    height = 5.0
    picture = new_picture(height)
    axes = picture.add_axes((0.075, 0.65 / height, 0.895, 1 - 1.5 / height))
    unit = TimeUnit(max(values[-1] for values in arms.values()))
    quiet_axes(axes)
    axes.yaxis.grid(True, color="#E5E7EB", linewidth=0.8)
    axes.set_xscale("log")
    every = [unit.of(v) for values in arms.values() for v in values if v > 0]
    goal = None if goal_ns is None else unit.of(goal_ns)
    low, high = min([*every, *([goal] if goal else [])]), max([*every, *([goal] if goal else [])])
    low, high = low / 1.12, high * 1.12
    axes.set_xlim(low, high)
    axes.set_ylim(0, 1.02)
    axes.xaxis.set_major_formatter(thousands)
    axes.xaxis.set_minor_formatter(thousands if high / low < 12 else lambda *_: "")
    axes.set_yticks([0, 0.25, 0.5, 0.75, 0.9, 1.0], ["0", "25 %", "50 %", "75 %", "90 %", "100 %"])
    axes.set_xlabel(f"{quantity.replace('_', ' ')} ({unit.name}, logarithmic)")
    axes.set_ylabel("share of calls")
    for (arm, values), colour in zip(arms.items(), _ARM_HUES * len(arms), strict=False):
        _curve(axes, arm, values, colour, unit, (low, high))
    if goal is not None:
        axes.axvline(goal, color=FAILURE, linewidth=1.2, dashes=(4, 3), zorder=5)
        axes.text(goal, 0.02, f" goal {goal:g} {unit.name}", color=FAILURE, fontsize=8.5, va="bottom", zorder=6)
    _limit(axes, min(len(values) for values in arms.values()))
    axes.legend(loc="upper left", bbox_to_anchor=(0.01, 0.97), fontsize=9)
    titles(
        picture,
        f"{quantity.replace('_', ' ')} · {headline(analysis, analysis.exchanges)}",
        evidence_line(analysis) + " · bands: 95 % at each point (Clopper–Pearson)",
    )
    return picture


def _curve(
    axes: Any, arm: str, values: Sequence[int], colour: str, unit: TimeUnit, limits: tuple[float, float]
) -> None:
    n = len(values)
    x = np.array([limits[0], *(unit.of(v) for v in values), limits[1]])
    counts = [*range(n + 1), n]
    below = [lower_bound(k, n, level=_BOTH_TAILS) for k in counts]
    above = [upper_bound(k, n, level=_BOTH_TAILS) for k in counts]
    within = slice(1, n + 1)  # outside of what was seen the band says no more than how few the calls are
    axes.fill_between(
        x[within], below[within], above[within], step="post", color=colour, alpha=0.14, linewidth=0, zorder=2
    )
    axes.step(
        x, [k / n for k in counts], where="post", color=colour, linewidth=1.8, label=f"{arm_name(arm)}  n {n}", zorder=4
    )


def _limit(axes: Any, n: int) -> None:
    """Above the last percentile that so few calls can show, the picture is not to be read."""
    shown = next((p for p, needed in _NEEDED if n >= needed), None)
    if shown == 99:
        return
    at = 0.0 if shown is None else shown / 100
    axes.axhline(at, color=MUTED, linewidth=0.9, dashes=(2, 3), zorder=3)
    words = (
        f"n = {n} is too small to speak of more than P{shown}"
        if shown
        else f"n = {n}: too few to speak of any percentile"
    )
    axes.text(
        0.995,
        at + 0.012,
        words,
        transform=axes.get_yaxis_transform(),
        ha="right",
        va="bottom",
        fontsize=8.5,
        color=MUTED,
        zorder=6,
    )
