"""Every trial a dot, with the median and its interval, per phase and arm: never a bare bar of means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from netdiag.palette import INK, MUTED
from netdiag.plot.shapes import evidence_line, headline, titles
from netdiag.plot.style import BAND, WIDTH_IN, Picture, TimeUnit, hue, new_picture, quiet_axes, settings, thousands
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange
from netdiag.records.labels import arm_name
from netdiag.records.statistics import Distribution, Statistics
from netdiag.records.timing import PhaseName

_ORDER = (*(str(name) for name in PhaseName), "unattributed", "total")
_ARM_IN = 0.34
_PANEL_GAP_IN = 0.5
_LEFT_IN, _RIGHT_IN = 2.05, 2.35
_FONT = 8.5
_SPREAD = 0.26
"""How far dots of one arm are moved apart, in rows; by their order, not at random, so that the picture is the same each time."""


@dataclass(frozen=True, slots=True)
class _Arm:
    statistics: Statistics
    exchanges: Sequence[Exchange]


def distributions(analysis: Analysis) -> Picture:
    """One panel per phase, one row per arm, each panel on its own scale. Excluded trials are hollow."""
    arms = _arms(analysis)
    phases = [name for name in _ORDER if _worth_showing(name, [arm.statistics for arm in arms])]
    with settings():
        return _draw(analysis, arms, phases)


def _arms(analysis: Analysis) -> list[_Arm]:
    """Statistics with the exchanges they are of. An exchange belongs to the arm that it names; in a file, to its protocol."""
    from netdiag.stats.distribution import arm_of, statistics

    rows = analysis.statistics or statistics(analysis.exchanges)
    return [_Arm(row, [e for e in analysis.exchanges if arm_of(e) == row.arm]) for row in rows]


def _worth_showing(name: str, rows: Sequence[Statistics]) -> bool:
    largest = max((row.phases[name].max or 0 for row in rows if name in row.phases), default=0)
    return largest > 0


def _draw(analysis: Analysis, arms: Sequence[_Arm], phases: Sequence[str]) -> Picture:
    panel_in = _ARM_IN * max(len(arms), 1)
    height = 0.95 + len(phases) * (panel_in + _PANEL_GAP_IN) + 0.1
    picture = new_picture(max(height, 1.5))
    height = picture.get_figheight()
    for number, name in enumerate(phases):
        bottom = height - 0.85 - (number + 1) * panel_in - number * _PANEL_GAP_IN
        share = (_LEFT_IN / WIDTH_IN, bottom / height, 1 - (_LEFT_IN + _RIGHT_IN) / WIDTH_IN, panel_in / height)
        _panel(picture.add_axes(share), name, arms)
    titles(
        picture,
        headline(analysis, analysis.exchanges),
        evidence_line(analysis) + " · dots: trials, line: median, band: its 95 % interval",
    )
    return picture


def _panel(axes: Any, name: str, arms: Sequence[_Arm]) -> None:
    values = [[_value(e, name) for e in arm.exchanges] for arm in arms]
    largest = max((v for row in values for v in row if v is not None), default=1)
    unit = TimeUnit(largest)
    quiet_axes(axes)
    axes.set_ylim(len(arms) - 0.5, -0.5)
    axes.set_xlim(*_limits([unit.of(v) for row in values for v in row if v is not None]))
    axes.set_yticks([])
    axes.xaxis.set_major_formatter(thousands)
    axes.tick_params(axis="x", labelsize=8, pad=2)
    axes.set_facecolor(BAND)
    axes.annotate(
        f"{name}\n({unit.name})",
        (0, 0.5),
        xycoords="axes fraction",
        xytext=(-_LEFT_IN * 72 + 10, 0),
        textcoords="offset points",
        fontweight="bold",
        va="center",
        annotation_clip=False,
    )
    for y, (arm, row) in enumerate(zip(arms, values, strict=True)):
        _arm_row(axes, y, arm, row, name, unit)


def _arm_row(axes: Any, y: int, arm: _Arm, row: Sequence[int | None], name: str, unit: TimeUnit) -> None:
    excluded = {e.exchange_id for e in arm.statistics.excluded}
    colour = hue(name) if name not in ("unattributed", "total") else INK
    for hollow in (False, True):
        chosen = [
            (unit.of(v), e)
            for v, e in zip(row, arm.exchanges, strict=True)
            if v is not None and (e.id in excluded) == hollow
        ]
        heights = [y + _SPREAD * (((5 * i) % 7) / 3 - 1) for i in range(len(chosen))]
        face = "none" if hollow else colour
        axes.scatter(
            [x for x, _ in chosen],
            heights,
            s=16,
            facecolors=face,
            edgecolors=MUTED if hollow else colour,
            linewidths=0.8,
            alpha=0.75,
            zorder=4,
        )
    spread = arm.statistics.phases.get(name)
    if spread is not None and spread.p50 is not None:
        _median(axes, y, spread, unit)
    look = {"textcoords": "offset points", "va": "center", "fontsize": _FONT, "annotation_clip": False}
    axes.annotate(
        arm_name(arm.statistics.arm), (0, y), xycoords=("axes fraction", "data"), xytext=(-8, 0), ha="right", **look
    )
    axes.annotate(_words(spread, unit), (1, y), xycoords=("axes fraction", "data"), xytext=(8, 0), ha="left", **look)


def _median(axes: Any, y: int, spread: Distribution, unit: TimeUnit) -> None:
    if spread.interval_lo is not None and spread.interval_hi is not None:
        axes.fill_betweenx(
            [y - 0.36, y + 0.36],
            unit.of(spread.interval_lo),
            unit.of(spread.interval_hi),
            color=INK,
            alpha=0.13,
            linewidth=0,
            zorder=3,
        )
    assert spread.p50 is not None
    x = unit.of(spread.p50)
    axes.plot([x, x], [y - 0.4, y + 0.4], color=INK, linewidth=1.8, zorder=5)


def _words(spread: Distribution | None, unit: TimeUnit) -> str:
    if spread is None or spread.p50 is None:
        return "no trial"
    interval = ""
    if spread.interval_lo is not None and spread.interval_hi is not None:
        interval = f" [{_short(unit.of(spread.interval_lo))}, {_short(unit.of(spread.interval_hi))}]"
    return f"{_short(unit.of(spread.p50))}{interval} {unit.name}  n {spread.n}"


def _short(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def _value(exchange: Exchange, name: str) -> int | None:
    if name == "total":
        return exchange.total_ns
    if name == "unattributed":
        return exchange.unattributed_ns
    durations = [phase.duration_ns for phase in exchange.phases if str(phase.name) == name]
    return sum(durations) if durations else None


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """All dots with a margin; never wider than needed, and down to zero where that is near."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = 0.06 * ((high - low) or high or 1.0)
    left = 0.0 if low < 0.25 * high else low - margin
    return (left - margin / 4 if left == 0.0 else left, high + margin)
