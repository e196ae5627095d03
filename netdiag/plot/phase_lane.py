"""The phases of a request in one row, and above them the events of its stream."""

from __future__ import annotations

from functools import partial
from typing import Any

from netdiag.palette import INK, MUTED
from netdiag.plot.lane import FONT, Lane, Rows, Scale
from netdiag.plot.shapes import Box, add_boxes, add_lines, halo
from netdiag.plot.style import hue, ink_on
from netdiag.records.exchange import Exchange
from netdiag.records.gaps import gaps
from netdiag.records.stream import EventKind
from netdiag.records.timing import Method
from netdiag.units import format_duration

_WITH_TEXT = frozenset({EventKind.TEXT, EventKind.REASONING, EventKind.TOOL, EventKind.REFUSAL})


def event_lane(exchange: Exchange, scale: Scale) -> Lane:
    """A line for each event of the stream; those that bring text are high."""
    stream = exchange.stream
    assert stream is not None

    def draw(axes: Any, top: float) -> None:
        for text, colour, high in ((True, hue("transfer"), 1.0), (False, MUTED, 0.55)):
            chosen = [e for e in stream.timeline if (e.kind in _WITH_TEXT) == text]
            lines = [
                ((scale(e.deliverable_at), top + 1.0), (scale(e.deliverable_at), top + 1.0 - high)) for e in chosen
            ]
            add_lines(axes, lines, colors=colour, linewidths=1.4, zorder=4)

    return Lane(f"events\n{stream.events}", 1.0, draw)


def phase_lane(exchange: Exchange, scale: Scale) -> Lane:
    """The phases in one row, their names below each other where they would collide."""
    labels: list[tuple[float, str, str, int | None]] = []
    rows = Rows()
    for phase in exchange.phases:
        sure = "" if phase.method is Method.EXACT else "~"
        text = f"{phase.name} {sure}{format_duration(phase.duration_ns)}"
        left = scale(phase.started_at)
        width = scale.characters(len(text) + 1)
        if width <= scale(phase.ended_at) - left:
            labels.append((left, text, str(phase.name), None))
            continue
        x = min(left, scale.end - width)
        row = rows.free(x)
        rows.fill(row, x + width)
        labels.append((x, text, str(phase.name), row))

    def draw(axes: Any, top: float) -> None:
        for phase in exchange.phases:
            box = Box(scale(phase.started_at), scale(phase.ended_at), top, top + 1.1)
            add_boxes(axes, str(phase.name), [box], zorder=4)
        for started_at, ended_at in gaps(exchange):
            add_boxes(axes, "unattributed", [Box(scale(started_at), scale(ended_at), top, top + 1.1)], zorder=4)
        for x, text, name, row in labels:
            y = top + 0.55 if row is None else top + 1.65 + row * 0.8
            colour = ink_on(name) if row is None else INK
            write = axes.text if row is None else partial(halo, axes)
            write(x + scale.characters(1) / 2, y, text, va="center", fontsize=FONT + 0.5, color=colour, zorder=6)

    return Lane("phases", 1.2 + 0.8 * len(rows), draw)
