"""One request on one time axis: packets of both sides, TLS records, HTTP messages, events, and the phases they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from netdiag.palette import FAILURE, INK, MUTED
from netdiag.plot.shapes import Box, add_boxes, add_lines, gaps, halo, titles
from netdiag.plot.style import (
    BAND,
    GRID,
    PAPER,
    WIDTH_IN,
    Picture,
    TimeUnit,
    hue,
    ink_on,
    new_picture,
    points_per_character,
    quiet_axes,
    settings,
    thousands,
)
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange
from netdiag.records.labels import connection_of, exchange_of, host_of, protocol_name, request_label, result_label
from netdiag.records.lanes import ExchangeLanes, LaneHole, LaneKind, LanePacket, LaneSpan
from netdiag.records.stream import EventKind
from netdiag.records.timing import Method
from netdiag.sanitise import one_line
from netdiag.units import format_bytes, format_duration

_SIDES = ("client", "server")
_LEFT_IN, _RIGHT_IN = 1.35, 0.25
_AXES_IN = WIDTH_IN - _LEFT_IN - _RIGHT_IN
_FONT = 8.0
_PACKETS_HIGH = 1.6
"""Height of a packet lane in rows; one row is ``_ROW_IN`` high."""
_ROW_IN = 0.24
_GAP = 0.55
_MOST_ROWS_OF_SPANS = 8
_SMALLEST_SHARE = 0.0022
"""Share of the axis that a span of no length takes, so that it is seen."""
_SIDE_HUES = {"client": "#3B6EA8", "server": "#6B5B95"}
_RESENT = frozenset({LaneKind.RETRANSMISSION, LaneKind.SPURIOUS})
_FLAGS = {LaneKind.SYN: "SYN", LaneKind.FIN: "FIN", LaneKind.RST: "RST", LaneKind.KEEP_ALIVE: "keep-alive"}


@dataclass(frozen=True, slots=True)
class _Lane:
    """One band of the picture: its heading, its height in rows, and what draws it from the row at which it begins."""

    heading: str
    rows: float
    draw: Callable[[Any, float], None]


@dataclass(frozen=True, slots=True)
class _Scale:
    """Time to places on the axis."""

    origin: int
    unit: TimeUnit
    end: float

    def __call__(self, at: int) -> float:
        return self.unit.of(at - self.origin)

    def characters(self, count: int) -> float:
        """How far ``count`` characters of a label reach, in units of the axis."""
        return count * points_per_character(_FONT) / 72 * self.end / _AXES_IN


def lanes(shown: ExchangeLanes | Analysis, exchange_id: int | None = None) -> Picture:
    """The lanes of one request, from ``netdiag.api.lanes``; or from an ``Analysis`` and an id, then without packets and records.

    Raises ``KeyError`` when the analysis has no such request.
    """
    rows = shown if isinstance(shown, ExchangeLanes) else _without_packets(shown, exchange_id)
    with settings():
        return _draw(rows)


def _without_packets(analysis: Analysis, exchange_id: int | None) -> ExchangeLanes:
    wanted = 0 if exchange_id is None else exchange_id
    exchange = exchange_of(analysis, wanted)
    if exchange is None:
        raise KeyError(f"no exchange {wanted} in this analysis")
    return ExchangeLanes(exchange=exchange, connection=connection_of(analysis, exchange.connection_id))


def _draw(shown: ExchangeLanes) -> Picture:
    exchange = shown.exchange
    unit = TimeUnit(exchange.total_ns)
    scale = _Scale(exchange.started_at, unit, unit.of(_last_instant(shown) - exchange.started_at) * 1.03 or 1.0)
    bands = _bands(shown, scale)
    rows = sum(band.rows + _GAP for band in bands)
    height = 1.45 + rows * _ROW_IN
    picture = new_picture(height)
    axes = picture.add_axes((_LEFT_IN / WIDTH_IN, 0.6 / height, _AXES_IN / WIDTH_IN, 1 - 1.4 / height))
    quiet_axes(axes)
    axes.set_xlim(0, scale.end)
    axes.set_ylim(rows, 0)
    axes.set_yticks([])
    axes.xaxis.set_major_formatter(thousands)
    axes.set_xlabel(f"time since the request began ({unit.name})")
    _guides(axes, exchange, scale)
    top = _GAP / 2
    for number, band in enumerate(bands):
        _heading(axes, band, top, ruled=number > 0)
        band.draw(axes, top)
        top += band.rows + _GAP
    titles(picture, _title(shown), _facts(shown))
    return picture


def _last_instant(shown: ExchangeLanes) -> int:
    """The end of the exchange; packets of the connection that come later are not of this picture."""
    return max(shown.exchange.ended_at, *(p.started_at + p.hi_ns for p in shown.exchange.phases), 0)


def _bands(shown: ExchangeLanes, scale: _Scale) -> list[_Lane]:
    sides = [side for side in _SIDES if any(p.side == side for p in shown.packets)]
    bands = [_packet_lane(shown, side, scale) for side in sides]
    for name, spans in (("TLS", shown.records), (protocol_name(shown.exchange.protocol), shown.messages)):
        for side in _SIDES:
            mine = [s for s in spans if s.side == side]
            if mine:
                bands.append(_span_lane(f"{name}\nfrom {side}", mine, scale))
    if shown.exchange.stream is not None and shown.exchange.stream.timeline:
        bands.append(_event_lane(shown.exchange, scale))
    bands.append(_phase_lane(shown.exchange, scale))
    return bands


def _packet_lane(shown: ExchangeLanes, side: str, scale: _Scale) -> _Lane:
    packets = [p for p in shown.packets if p.side == side]
    holes = [h for h in shown.holes if h.side == side]
    largest = max((p.payload_bytes for p in shown.packets), default=0) or 1

    def draw(axes: Any, top: float) -> None:
        bottom = top + _PACKETS_HIGH
        _hole_boxes(axes, holes, scale, top, bottom)
        axes.plot([0, scale.end], [bottom, bottom], color=MUTED, linewidth=0.7, zorder=2)
        for resent, colour in ((False, _SIDE_HUES[side]), (True, FAILURE)):
            chosen = [p for p in packets if (p.kind in _RESENT) == resent]
            add_lines(axes, [_stem(p, scale, bottom, largest) for p in chosen], colors=colour, linewidths=1.6, zorder=4)
        _flag_labels(axes, packets, scale, bottom)

    sent = sum(p.payload_bytes for p in packets)
    return _Lane(f"{side}\n{len(packets)} packets\n{format_bytes(sent)}", _PACKETS_HIGH, draw)


def _stem(
    packet: LanePacket, scale: _Scale, bottom: float, largest: int
) -> tuple[tuple[float, float], tuple[float, float]]:
    """A line whose height tells the payload's size; a packet without payload is a stub."""
    share = 0.14 + 0.86 * packet.payload_bytes / largest if packet.payload_bytes else 0.12
    x = scale(packet.at)
    return ((x, bottom), (x, bottom - share * _PACKETS_HIGH))


def _hole_boxes(axes: Any, holes: Sequence[LaneHole], scale: _Scale, top: float, bottom: float) -> None:
    for hole in holes:
        left = scale(hole.from_at)
        right = scale(hole.until_at) if hole.until_at is not None else scale.end
        add_boxes(
            axes, "hole", [Box(left, right, top, bottom)], facecolor=FAILURE, edgecolor="none", alpha=0.13, zorder=1
        )
        filled = f"for {format_duration(hole.until_at - hole.from_at)}" if hole.until_at is not None else "never filled"
        text = f"{format_bytes(hole.size_bytes, none='octets')} missing {filled}"
        axes.text((left + right) / 2, top + 0.08, text, ha="center", va="top", fontsize=_FONT, color=FAILURE, zorder=6)


def _flag_labels(axes: Any, packets: Sequence[LanePacket], scale: _Scale, bottom: float) -> None:
    """SYN, FIN, RST and retransmissions by name, where there is room for the name."""
    reached = -scale.end
    for packet in packets:
        name = _FLAGS.get(packet.kind) or ("resent" if packet.kind in _RESENT else "")
        x = scale(packet.at)
        if not name or x < reached:
            continue
        colour = FAILURE if packet.kind in _RESENT or packet.kind is LaneKind.RST else INK
        flat = 0.12 if packet.payload_bytes == 0 else 0.5
        text = f"{name} {packet.number}"
        place, side = _beside(x, x, text, scale)
        halo(
            axes,
            place,
            bottom - flat * _PACKETS_HIGH,
            text,
            fontsize=_FONT,
            color=colour,
            ha=side,
            va="center",
            zorder=6,
        )
        reached = x + scale.characters(len(text) + 1)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A span with the row and the label that it got."""

    span: LaneSpan
    row: int
    text: str
    at: float
    side: str
    """``left``: the label begins at ``at``; ``right``: it ends there; ``center``: it is inside the box."""


def _span_lane(heading: str, spans: Sequence[LaneSpan], scale: _Scale) -> _Lane:
    placed = _packed(spans, scale)
    left_out = len(spans) - len(placed)

    def draw(axes: Any, top: float) -> None:
        for own in (True, False):
            boxes = [_span_box(p, scale, top) for p in placed if p.span.of_this_exchange == own]
            add_boxes(axes, "span", boxes, **_span_look(spans[0].side, own))
        for p in placed:
            _span_label(axes, p, top)

    more = f"\n{left_out} more" if left_out else ""
    return _Lane(heading + more, 1 + max((p.row for p in placed), default=0), draw)


def _span_look(side: str, own: bool) -> dict[str, Any]:
    colour = _SIDE_HUES[side]
    return {"facecolor": colour if own else BAND, "edgecolor": colour, "linewidth": 0.7, "zorder": 4}


def _packed(spans: Sequence[LaneSpan], scale: _Scale) -> list[_Placed]:
    """Rows for spans so that neither boxes nor labels overlap; what finds no room in the last row is left out, and counted in the heading."""
    reached: list[float] = []
    placed = []
    for span in sorted(spans, key=lambda s: s.seen_at):
        left, right = _span_edges(span, scale)
        text = _span_text(span)
        at, side = _beside(left, right, text, scale)
        width = scale.characters(len(text) + 1)
        begin, end = (
            (at - width, right) if side == "right" else (left, right) if side == "center" else (left, at + width)
        )
        row = next((i for i, taken in enumerate(reached) if taken <= begin), len(reached))
        if row >= _MOST_ROWS_OF_SPANS:
            continue
        if row == len(reached):
            reached.append(0.0)
        reached[row] = end
        placed.append(_Placed(span, row, text, at, side))
    return placed


def _beside(left: float, right: float, text: str, scale: _Scale) -> tuple[float, str]:
    """Where a label goes: inside a wide box, else to its right, else to its left where the right edge is too near."""
    width = scale.characters(len(text) + 1)
    gap = scale.end * 0.005
    if width < right - left:
        return (left + right) / 2, "center"
    return (right + gap, "left") if right + width < scale.end else (left - gap, "right")


def _span_edges(span: LaneSpan, scale: _Scale) -> tuple[float, float]:
    left = scale(span.seen_at)
    right = scale(span.deliverable_at) if span.deliverable_at is not None else scale.end
    return left, max(right, left + scale.end * _SMALLEST_SHARE)


def _span_box(placed: _Placed, scale: _Scale, top: float) -> Box:
    left, right = _span_edges(placed.span, scale)
    return Box(left, right, top + placed.row + 0.14, top + placed.row + 0.86)


def _span_text(span: LaneSpan) -> str:
    size = format_bytes(span.size_bytes, none="")
    whole = "" if span.deliverable_at is not None else ", never whole"
    return f"{one_line(span.label, most=40)} {size}".rstrip() + whole


def _span_label(axes: Any, placed: _Placed, top: float) -> None:
    y = top + placed.row + 0.5
    look = {"va": "center", "ha": placed.side, "fontsize": _FONT, "zorder": 6}
    if placed.side == "center":
        axes.text(placed.at, y, placed.text, color=PAPER if placed.span.of_this_exchange else MUTED, **look)
    else:
        halo(axes, placed.at, y, placed.text, color=INK if placed.span.of_this_exchange else MUTED, **look)


def _event_lane(exchange: Exchange, scale: _Scale) -> _Lane:
    stream = exchange.stream
    assert stream is not None

    def draw(axes: Any, top: float) -> None:
        for text, colour, high in ((True, hue("transfer"), 1.0), (False, MUTED, 0.55)):
            chosen = [e for e in stream.timeline if (e.kind in _WITH_TEXT) == text]
            lines = [
                ((scale(e.deliverable_at), top + 1.0), (scale(e.deliverable_at), top + 1.0 - high)) for e in chosen
            ]
            add_lines(axes, lines, colors=colour, linewidths=1.4, zorder=4)

    return _Lane(f"events\n{stream.events}", 1.0, draw)


_WITH_TEXT = frozenset({EventKind.TEXT, EventKind.REASONING, EventKind.TOOL, EventKind.REFUSAL})


def _phase_lane(exchange: Exchange, scale: _Scale) -> _Lane:
    """The phases in one row, their names below each other where they would collide."""
    labels: list[tuple[float, str, str, int]] = []
    reached: list[float] = []
    for phase in exchange.phases:
        sure = "" if phase.method is Method.EXACT else "~"
        text = f"{phase.name} {sure}{format_duration(phase.duration_ns)}"
        left = scale(phase.started_at)
        width = scale.characters(len(text) + 1)
        if width <= scale(phase.ended_at) - left:
            labels.append((left, text, str(phase.name), -1))
            continue
        x = min(left, scale.end - width)
        row = next((i for i, taken in enumerate(reached) if taken <= x), len(reached))
        if row == len(reached):
            reached.append(0.0)
        reached[row] = x + width
        labels.append((x, text, str(phase.name), row))

    def draw(axes: Any, top: float) -> None:
        for phase in exchange.phases:
            box = Box(scale(phase.started_at), scale(phase.ended_at), top, top + 1.1)
            add_boxes(axes, str(phase.name), [box], zorder=4)
        for started_at, ended_at in gaps(exchange):
            add_boxes(axes, "unattributed", [Box(scale(started_at), scale(ended_at), top, top + 1.1)], zorder=4)
        for x, text, name, row in labels:
            inside = row < 0
            y = top + 0.55 if inside else top + 1.65 + row * 0.8
            colour = ink_on(name) if inside else INK
            write = axes.text if inside else partial(halo, axes)
            write(x + scale.characters(1) / 2, y, text, va="center", fontsize=_FONT + 0.5, color=colour, zorder=6)

    return _Lane("phases", 1.2 + 0.8 * len(reached), draw)


def _heading(axes: Any, band: _Lane, top: float, *, ruled: bool) -> None:
    if ruled:
        axes.axhline(top - _GAP / 2, xmin=-_LEFT_IN / _AXES_IN, color=GRID, linewidth=1.0, zorder=1, clip_on=False)
    axes.annotate(
        band.heading,
        (0, top + band.rows / 2),
        xycoords=("axes fraction", "data"),
        xytext=(-8, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=8.5,
        linespacing=1.15,
        annotation_clip=False,
    )


def _guides(axes: Any, exchange: Exchange, scale: _Scale) -> None:
    """A vertical line through all lanes wherever a phase begins or ends."""
    instants = {at for phase in exchange.phases for at in (phase.started_at, phase.ended_at)}
    for at in sorted(instants):
        axes.axvline(scale(at), color=MUTED, linewidth=0.6, linestyle=(0, (2, 2)), zorder=1.5)
    axes.xaxis.grid(True, color=GRID, linewidth=0.6)


def _title(shown: ExchangeLanes) -> str:
    e = shown.exchange
    total = f"{result_label(e)}, {format_duration(e.total_ns)}"
    return f"#{e.id}  {request_label(e, most=60)} · {host_of(e, shown.connection)} · {total}"


def _facts(shown: ExchangeLanes) -> str:
    e, connection = shown.exchange, shown.connection
    parts = [protocol_name(e.protocol), f"stream {e.stream_id}" if e.stream_id is not None else ""]
    if connection is not None:
        parts += [f"connection {connection.id}", f"{connection.client} → {connection.server}"]
        parts.append(
            f"min RTT {format_duration(connection.min_rtt_ns)}" if connection.min_rtt_ns is not None else "RTT unknown"
        )
    if not shown.packets:
        parts.append("packets not shown")
    if shown.left_out:
        parts.append(f"{shown.left_out:,} packets left out")
    return " · ".join(part for part in parts if part)
