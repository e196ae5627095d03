"""All requests, one row each, phases side by side: which phase is the long one, and who reused which connection."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

from netdiag.palette import FAILURE, INK, MUTED
from netdiag.plot.shapes import Box, add_boxes, add_lines, evidence_line, headline, phase_legend, titles
from netdiag.plot.style import (
    BAND,
    WIDTH_IN,
    Picture,
    TimeUnit,
    ink_on,
    new_picture,
    points_per_character,
    quiet_axes,
    settings,
    thousands,
)
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange, Outcome
from netdiag.records.gaps import gaps
from netdiag.records.labels import arm_name, connection_of, host_of, request_label, result_label
from netdiag.records.timing import Method, PhaseName
from netdiag.units import format_duration

MOST_ROWS = 60
_ROW_IN = 0.27
_BAR = 0.36
"""Half the height of a bar, in rows."""
_IDLE_SHARE = 0.3
"""Below this share of busy time a common clock would draw slivers."""
_LABEL_CHARACTERS = 48
_FONT = 8.5
_NAME_SLACK = 1.1
"""Names with many wide letters must not reach into the gutter."""

_ORDER = (*(str(name) for name in PhaseName), "unattributed")


@dataclass(frozen=True, slots=True)
class _Row:
    exchange: Exchange
    group: int
    """Rows of one connection (or one arm) are one group."""
    origin: int
    """The instant that is drawn at zero."""


def waterfall(analysis: Analysis, *, common_clock: bool | None = None) -> Picture:
    """One row a request. On a common clock, rows of a connection together; or, with ``common_clock=False``, each from its own beginning.

    None decides: the trials of a probe, and requests with long pauses between them, are compared from their beginnings. More than 60
    requests are cut to the slowest 60, and the picture says so.
    """
    shown = _most_telling(analysis.exchanges)
    compared = analysis.source.kind == "probe" and len(shown) > 1
    shared = (not compared and _is_busy(shown)) if common_clock is None else common_clock
    rows = _rows_by_connection(shown) if shared else _rows_by_arm(shown)
    with settings():
        return _draw(analysis, rows, shared)


def _most_telling(exchanges: Sequence[Exchange]) -> list[Exchange]:
    if len(exchanges) <= MOST_ROWS:
        return list(exchanges)
    kept = sorted(exchanges, key=lambda e: (-e.total_ns, e.id))[:MOST_ROWS]
    return sorted(kept, key=lambda e: e.id)


def _is_busy(exchanges: Sequence[Exchange]) -> bool:
    if not exchanges:
        return True
    span = max(e.ended_at for e in exchanges) - min(e.started_at for e in exchanges)
    busy, reached = 0, 0
    for e in sorted(exchanges, key=lambda e: e.started_at):
        busy += max(0, e.ended_at - max(e.started_at, reached))
        reached = max(reached, e.ended_at)
    longest = max(e.total_ns for e in exchanges)
    return busy >= _IDLE_SHARE * span or longest >= 0.5 * span


def _rows_by_connection(exchanges: Sequence[Exchange]) -> list[_Row]:
    """Connections in the order of their first request; a request that never had one is a group of its own."""
    origin = min((e.started_at for e in exchanges), default=0)
    groups: dict[Any, int] = {}
    keyed = []
    for e in sorted(exchanges, key=lambda e: (e.started_at, e.id)):
        key = e.connection_id if e.connection_id is not None else ("none", e.id)
        keyed.append((groups.setdefault(key, len(groups)), e))
    return [_Row(e, group, origin) for group, e in sorted(keyed, key=lambda pair: pair[0])]


def _rows_by_arm(exchanges: Sequence[Exchange]) -> list[_Row]:
    arms = {arm: place for place, arm in enumerate(sorted({e.arm or "" for e in exchanges}))}
    ordered = sorted(exchanges, key=lambda e: (arms[e.arm or ""], e.started_at, e.id))
    return [_Row(e, arms[e.arm or ""], e.started_at) for e in ordered]


def _draw(analysis: Analysis, rows: Sequence[_Row], shared: bool) -> Picture:
    height = 1.75 + _ROW_IN * max(len(rows), 1)
    picture = new_picture(height)
    names = _row_names(analysis, rows, shared)
    uncounted = {e.exchange_id for statistics in analysis.statistics for e in statistics.excluded}
    sheet = _Sheet(names, [_verdict(row.exchange) for row in rows], bracketed=len({r.group for r in rows}) < len(rows))
    axes = picture.add_axes((sheet.left, 0.62 / height, sheet.width, 1 - 1.55 / height))
    longest = max((r.exchange.ended_at - r.origin for r in rows), default=1) or 1
    unit = TimeUnit(longest)
    quiet_axes(axes)
    axes.set_xlim(0, sheet.right_end([unit.of(_reach(row)) for row in rows]))
    axes.set_ylim(max(len(rows), 1) - 0.4, -0.6)
    axes.set_yticks([])
    axes.xaxis.set_major_formatter(thousands)
    since = "the first request began" if shared else "each request began"
    axes.set_xlabel(f"time since {since} ({unit.name})")
    _bars(axes, rows, unit)
    _labels(axes, rows, unit, names, uncounted)
    _numbers(axes, rows, unit, sheet)
    _groups(axes, rows, shared, sheet)
    present = [name for name in _ORDER if any(name in _names(row.exchange) for row in rows)]
    above = (1.0, 1 + 0.04 / (height - 1.55))
    phase_legend(axes, present, loc="lower right", bbox_to_anchor=above, fontsize=9, borderaxespad=0)
    left_out = len(analysis.exchanges) - len(rows)
    notes = [f"only the slowest {len(rows)} of {len(analysis.exchanges):,} are drawn"] if left_out else []
    notes += _legend(rows, uncounted)
    titles(picture, headline(analysis, analysis.exchanges), " · ".join([evidence_line(analysis), *notes]))
    return picture


def _legend(rows: Sequence[_Row], uncounted: Set[int]) -> list[str]:
    """What grey names and thin lines mean, where there are any."""
    exchanges = [row.exchange for row in rows]
    bounded = any(p.method is not Method.EXACT and p.hi_ns > p.lo_ns for e in exchanges for p in e.phases)
    return [
        *(["grey: not counted"] if any(e.id in uncounted and not e.failed for e in exchanges) else []),
        *(["ticks: events"] if any(e.stream is not None and e.stream.timeline for e in exchanges) else []),
        *(["black lines: bounds"] if bounded else []),
    ]


class _Sheet:
    """Where things are, in shares of the picture's width, from the widths of the labels."""

    def __init__(self, names: Sequence[str], verdicts: Sequence[str], *, bracketed: bool) -> None:
        inch = points_per_character(_FONT) / 72
        self.gutter_in = 0.42 if bracketed else 0.14
        name_in = max((len(name) for name in names), default=0) * inch * _NAME_SLACK
        self.left = (self.gutter_in + name_in + 0.15) / WIDTH_IN
        self.width = 1 - self.left - 0.2 / WIDTH_IN
        self._verdicts_in = [len(verdict) * inch + 0.15 for verdict in verdicts]

    @property
    def axes_in(self) -> float:
        """Width of the axes in inches."""
        return self.width * WIDTH_IN

    def right_end(self, ends: Sequence[float]) -> float:
        """The end of the time axis that leaves room for each bar's verdict beside it."""
        room = (
            end * self.axes_in / (self.axes_in - verdict) for end, verdict in zip(ends, self._verdicts_in, strict=True)
        )
        return max(room, default=1.0) or 1.0

    def gutter(self, inches: float) -> float:
        """A place in the gutter, ``inches`` from the picture's left edge, in fractions of the axes."""
        return (inches / WIDTH_IN - self.left) / self.width


def _row_names(analysis: Analysis, rows: Sequence[_Row], shared: bool) -> list[str]:
    hosts = {host_of(r.exchange, connection_of(analysis, r.exchange.connection_id)) for r in rows}
    return [_row_name(analysis, row.exchange, with_host=len(hosts) > 1, with_trial=not shared) for row in rows]


def _row_name(analysis: Analysis, e: Exchange, *, with_host: bool, with_trial: bool) -> str:
    trial = f"trial {e.trial}  " if with_trial and e.trial is not None else ""
    host = host_of(e, connection_of(analysis, e.connection_id))
    name = f"{trial}#{e.id}  {request_label(e, host=host if with_host else None) or host}"
    return name if len(name) <= _LABEL_CHARACTERS else name[: _LABEL_CHARACTERS - 1] + "…"


def _reach(row: _Row) -> int:
    """Where a row's drawing ends: the end of its request, or of the whisker that goes beyond it."""
    whiskers = (p.started_at + p.hi_ns for p in row.exchange.phases if p.method is not Method.EXACT)
    return max(row.exchange.ended_at, *whiskers, 0) - row.origin


def _verdict(e: Exchange) -> str:
    total = format_duration(e.total_ns)
    return f"{total}  {result_label(e)}" if e.failed or e.outcome is Outcome.INCOMPLETE else total


def _names(exchange: Exchange) -> set[str]:
    names = {str(phase.name) for phase in exchange.phases}
    return names | {"unattributed"} if exchange.unattributed_ns > 0 else names


def _bars(axes: Any, rows: Sequence[_Row], unit: TimeUnit) -> None:
    boxes: dict[str, list[Box]] = {}
    whiskers, events = [], []
    for y, row in enumerate(rows):
        for phase in row.exchange.phases:
            left, right = unit.of(phase.started_at - row.origin), unit.of(phase.ended_at - row.origin)
            boxes.setdefault(str(phase.name), []).append(Box(left, right, y - _BAR, y + _BAR))
            if phase.method is not Method.EXACT and phase.hi_ns > phase.lo_ns:
                shortest, longest = unit.of(phase.lo_ns), unit.of(phase.hi_ns)
                whiskers.append(((left + shortest, y), (left + longest, y)))
        for started_at, ended_at in gaps(row.exchange):
            gap = Box(unit.of(started_at - row.origin), unit.of(ended_at - row.origin), y - _BAR, y + _BAR)
            boxes.setdefault("unattributed", []).append(gap)
        for event in row.exchange.stream.timeline if row.exchange.stream else ():
            at = unit.of(event.deliverable_at - row.origin)
            events.append(((at, y - _BAR), (at, y - 0.4 * _BAR)))
    for name in _ORDER:
        add_boxes(axes, name, boxes.get(name, []), zorder=3)
    add_lines(axes, events, colors=INK, linewidths=0.5, alpha=0.55, zorder=4)
    add_lines(axes, whiskers, colors=INK, linewidths=1.2, zorder=5)


def _labels(axes: Any, rows: Sequence[_Row], unit: TimeUnit, names: Sequence[str], uncounted: Set[int]) -> None:
    """The request's name on the left (grey when statistics leave it out), its total and how it failed at the end of its bar."""
    look = {"textcoords": "offset points", "va": "center", "fontsize": _FONT, "annotation_clip": False}
    for y, (row, name) in enumerate(zip(rows, names, strict=True)):
        e = row.exchange
        colour = FAILURE if e.failed else MUTED if e.id in uncounted else INK
        ended = unit.of(e.ended_at - row.origin)
        axes.annotate(_verdict(e), (unit.of(_reach(row)), y), xytext=(7 if e.failed else 5, 0), color=colour, **look)
        axes.annotate(
            name, (0, y), xycoords=("axes fraction", "data"), xytext=(-8, 0), ha="right", color=colour, **look
        )
        if e.failed:
            axes.plot([ended], [y], marker="x", color=FAILURE, markersize=6, markeredgewidth=1.6, zorder=6)


def _numbers(axes: Any, rows: Sequence[_Row], unit: TimeUnit, sheet: _Sheet) -> None:
    """Each phase's duration inside its bar, where the bar is wide enough to read it."""
    per_inch = axes.get_xlim()[1] / sheet.axes_in
    for y, row in enumerate(rows):
        for phase in row.exchange.phases:
            text = format_duration(phase.duration_ns).removesuffix(" ms")
            width = unit.of(phase.duration_ns)
            if width / per_inch < (len(text) + 1.5) * points_per_character(_FONT) / 72:
                continue
            middle = unit.of(phase.started_at - row.origin) + width / 2
            axes.text(
                middle, y, text, ha="center", va="center", fontsize=_FONT, color=ink_on(str(phase.name)), zorder=7
            )


def _groups(axes: Any, rows: Sequence[_Row], shared: bool, sheet: _Sheet) -> None:
    """A band and a bracket for each connection (or arm), so that reuse is seen at a glance."""
    spans: dict[int, list[int]] = {}
    for y, row in enumerate(rows):
        spans.setdefault(row.group, []).append(y)
    if len(spans) == len(rows) or (not shared and len(spans) == 1):
        return
    for group, ys in spans.items():
        if group % 2:
            left = sheet.gutter(0.1)
            axes.axhspan(
                ys[0] - 0.5, ys[-1] + 0.5, xmin=left, xmax=1.01, color=BAND, zorder=0, clip_on=False, linewidth=0
            )
        first = rows[ys[0]].exchange
        if not shared:
            _bracket(axes, ys, arm_name(first.arm or "all"), sheet)
        elif len(ys) > 1:
            _bracket(axes, ys, f"connection {first.connection_id}" if len(ys) > 3 else f"c{first.connection_id}", sheet)


def _bracket(axes: Any, ys: Sequence[int], label: str, sheet: _Sheet) -> None:
    place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "annotation_clip": False}
    top, bottom = ys[0] - _BAR, ys[-1] + _BAR
    x = sheet.gutter(0.36)
    line = {"arrowstyle": "-", "color": MUTED, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (x, top), xytext=(x, bottom), textcoords=("axes fraction", "data"), arrowprops=line, **place)
    middle = (sheet.gutter(0.22), (top + bottom) / 2)
    axes.annotate(label, middle, rotation=90, ha="center", va="center", fontsize=8, color=MUTED, **place)
