"""Where the time of a call goes: the typical call and the slowest one side by side, never an average of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from netdiag.plot.shapes import Box, add_boxes, evidence_line, headline, phase_legend, titles
from netdiag.plot.style import WIDTH_IN, Picture, TimeUnit, ink_on, new_picture, quiet_axes, settings, thousands
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange
from netdiag.records.labels import arm_name, result_label
from netdiag.records.timing import PhaseName
from netdiag.stats.distribution import arm_of
from netdiag.stats.medoid import medoid

_ROW_IN = 0.52
_LEFT_IN, _RIGHT_IN = 2.55, 1.0
_ORDER = (*(str(name) for name in PhaseName), "unattributed")
_LEAST_LABEL = 0.045
"""Share of the axis that a piece must have for its duration to be written on it."""
_MOST_ARMS = 12


@dataclass(frozen=True, slots=True)
class _Row:
    label: str
    exchange: Exchange


def budget(analysis: Analysis) -> Picture:
    """Two bars per arm: the call closest to the median of every phase, and the slowest. Phases are added up, gaps are unexplained time.

    Raises ``KeyError`` when there is no successful call.
    """
    rows = _rows(analysis)
    if not rows:
        raise KeyError("no successful call")
    with settings():
        return _draw(analysis, rows)


def _rows(analysis: Analysis) -> list[_Row]:
    uncounted = {row.exchange_id for s in analysis.statistics for row in s.excluded}
    arms: dict[str, list[Exchange]] = {}
    for exchange in analysis.exchanges:
        if exchange.id not in uncounted and not exchange.failed:
            arms.setdefault(arm_of(exchange), []).append(exchange)
    rows: list[_Row] = []
    for arm, group in sorted(arms.items())[:_MOST_ARMS]:  # trials come in random order; pictures do not
        typical, slowest = medoid(group), max(group, key=lambda e: e.total_ns)
        assert typical is not None
        rows.append(_Row(f"{arm_name(arm)}, typical of {len(group)}", typical))
        if slowest.id != typical.id:
            rows.append(_Row(f"{arm_name(arm)}, slowest", slowest))
    return rows


def _draw(analysis: Analysis, rows: Sequence[_Row]) -> Picture:
    height = 1.85 + _ROW_IN * len(rows)
    picture = new_picture(height)
    axes = picture.add_axes(
        (_LEFT_IN / WIDTH_IN, 0.65 / height, 1 - (_LEFT_IN + _RIGHT_IN) / WIDTH_IN, _ROW_IN * len(rows) / height)
    )
    longest = max(row.exchange.total_ns for row in rows)
    unit = TimeUnit(longest)
    quiet_axes(axes)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, unit.of(longest) * 1.01)
    axes.xaxis.set_major_formatter(thousands)
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_xlabel(f"time ({unit.name})")
    parts = [_parts(row.exchange) for row in rows]
    for y, (row, part) in enumerate(zip(rows, parts, strict=True)):
        _bar(axes, y, part, unit, unit.of(longest))
        axes.annotate(
            f"{unit.of(row.exchange.total_ns):,.1f} {unit.name}",
            (unit.of(row.exchange.total_ns), y),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontweight="bold",
            annotation_clip=False,
        )
    present = [name for name in _ORDER if any(part.get(name) for part in parts)]
    phase_legend(axes, present, loc="lower left", bbox_to_anchor=(0, 1.0), fontsize=9)
    slowest = max(rows, key=lambda row: row.exchange.total_ns).exchange
    titles(
        picture,
        f"Where the time goes · {headline(analysis, analysis.exchanges)}",
        evidence_line(analysis)
        + f" · real calls, none averaged; slowest: #{slowest.id} {result_label(slowest)}".rstrip(),
    )
    return picture


def _parts(exchange: Exchange) -> dict[str, int]:
    found: dict[str, int] = {}
    for phase in exchange.phases:
        found[str(phase.name)] = found.get(str(phase.name), 0) + phase.duration_ns
    return {**found, "unattributed": exchange.unattributed_ns}


def _bar(axes: Any, y: int, parts: dict[str, int], unit: TimeUnit, span: float) -> None:
    at = 0.0
    for name in _ORDER:
        width = unit.of(parts.get(name, 0))
        if width <= 0:
            continue
        add_boxes(axes, name, [Box(at, at + width, y - 0.33, y + 0.33)], zorder=3)
        if width >= _LEAST_LABEL * span:
            axes.text(
                at + width / 2, y, f"{width:,.1f}", ha="center", va="center", fontsize=8.5, color=ink_on(name), zorder=4
            )
        at += width
