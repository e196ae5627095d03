"""Boxes from the first octet of a TLS record or HTTP message to when it was deliverable, each with its label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from netdiag.palette import INK, MUTED
from netdiag.plot.lane import FONT, SIDE_HUES, Lane, Rows, Scale, beside
from netdiag.plot.shapes import Box, add_boxes, halo
from netdiag.plot.style import BAND, PAPER
from netdiag.records.lanes import LaneSpan
from netdiag.sanitise import one_line
from netdiag.units import format_bytes

_MOST_ROWS_OF_SPANS = 8
_SMALLEST_SHARE = 0.0022
"""Share of the axis that a span of no length takes, so that it is seen."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A span with the row and the label that it got."""

    span: LaneSpan
    row: int
    text: str
    at: float
    side: str
    """``left``: the label begins at ``at``; ``right``: it ends there; ``center``: it is inside the box."""


def span_lane(heading: str, spans: Sequence[LaneSpan], scale: Scale) -> Lane:
    """Spans of one side (at least one), as many rows as they need; those of other exchanges are pale."""
    placed = _packed(spans, scale)
    left_out = len(spans) - len(placed)

    def draw(axes: Any, top: float) -> None:
        for own in (True, False):
            boxes = [_span_box(p, scale, top) for p in placed if p.span.of_this_exchange == own]
            add_boxes(axes, "span", boxes, **_span_look(spans[0].side, own))
        for p in placed:
            _span_label(axes, p, top)

    more = f"\n{left_out} more" if left_out else ""
    return Lane(heading + more, 1 + max((p.row for p in placed), default=0), draw)


def _span_look(side: str, own: bool) -> dict[str, Any]:
    colour = SIDE_HUES[side]
    return {"facecolor": colour if own else BAND, "edgecolor": colour, "linewidth": 0.7, "zorder": 4}


def _packed(spans: Sequence[LaneSpan], scale: Scale) -> list[_Placed]:
    """Rows for spans so that neither boxes nor labels overlap; what finds no room in the last row is left out, and counted in the heading."""
    rows, placed = Rows(), []
    for span in sorted(spans, key=lambda s: s.seen_at):
        left, right = _span_edges(span, scale)
        text = _span_text(span)
        at, side = beside(left, right, text, scale)
        begin, end = _reach(left, right, at, side, scale.characters(len(text) + 1))
        row = rows.free(begin)
        if row < _MOST_ROWS_OF_SPANS:
            rows.fill(row, end)
            placed.append(_Placed(span, row, text, at, side))
    return placed


def _reach(left: float, right: float, at: float, side: str, width: float) -> tuple[float, float]:
    """From where to where a box and its label go."""
    if side == "right":
        return at - width, right
    return (left, right) if side == "center" else (left, at + width)


def _span_edges(span: LaneSpan, scale: Scale) -> tuple[float, float]:
    left = scale(span.seen_at)
    right = scale(span.deliverable_at) if span.deliverable_at is not None else scale.end
    return left, max(right, left + scale.end * _SMALLEST_SHARE)


def _span_box(placed: _Placed, scale: Scale, top: float) -> Box:
    left, right = _span_edges(placed.span, scale)
    return Box(left, right, top + placed.row + 0.14, top + placed.row + 0.86)


def _span_text(span: LaneSpan) -> str:
    size = format_bytes(span.size_bytes, none="")
    whole = "" if span.deliverable_at is not None else ", never whole"
    return f"{one_line(span.label, most=40)} {size}".rstrip() + whole


def _span_label(axes: Any, placed: _Placed, top: float) -> None:
    y = top + placed.row + 0.5
    look = {"va": "center", "ha": placed.side, "fontsize": FONT, "zorder": 6}
    if placed.side == "center":
        axes.text(placed.at, y, placed.text, color=PAPER if placed.span.of_this_exchange else MUTED, **look)
    else:
        halo(axes, placed.at, y, placed.text, color=INK if placed.span.of_this_exchange else MUTED, **look)
