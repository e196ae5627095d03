"""One request on one time axis: packets of both sides, TLS records, HTTP messages, events, and the phases they make."""

from __future__ import annotations

from typing import Any

from netdiag.palette import MUTED
from netdiag.plot.lane import AXES_IN, LEFT_IN, Lane, Scale
from netdiag.plot.packet_lane import packet_lane
from netdiag.plot.phase_lane import event_lane, phase_lane
from netdiag.plot.shapes import titles
from netdiag.plot.span_lane import span_lane
from netdiag.plot.style import GRID, WIDTH_IN, Picture, TimeUnit, new_picture, quiet_axes, settings, thousands
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange
from netdiag.records.labels import connection_of, exchange_of, host_of, protocol_name, request_label, result_label
from netdiag.records.lanes import ExchangeLanes
from netdiag.units import format_duration

_SIDES = ("client", "server")
_ROW_IN = 0.24
_GAP = 0.55


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
    scale = Scale(exchange.started_at, unit, unit.of(_last_instant(shown) - exchange.started_at) * 1.03 or 1.0)
    bands = _bands(shown, scale)
    rows = sum(band.rows + _GAP for band in bands)
    height = 1.45 + rows * _ROW_IN
    picture = new_picture(height)
    axes = picture.add_axes((LEFT_IN / WIDTH_IN, 0.6 / height, AXES_IN / WIDTH_IN, 1 - 1.4 / height))
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


def _bands(shown: ExchangeLanes, scale: Scale) -> list[Lane]:
    sides = [side for side in _SIDES if any(p.side == side for p in shown.packets)]
    bands = [packet_lane(shown, side, scale) for side in sides]
    for name, spans in (("TLS", shown.records), (protocol_name(shown.exchange.protocol), shown.messages)):
        for side in _SIDES:
            mine = [s for s in spans if s.side == side]
            if mine:
                bands.append(span_lane(f"{name}\nfrom {side}", mine, scale))
    if shown.exchange.stream is not None and shown.exchange.stream.timeline:
        bands.append(event_lane(shown.exchange, scale))
    bands.append(phase_lane(shown.exchange, scale))
    return bands


def _heading(axes: Any, band: Lane, top: float, *, ruled: bool) -> None:
    if ruled:
        axes.axhline(top - _GAP / 2, xmin=-LEFT_IN / AXES_IN, color=GRID, linewidth=1.0, zorder=1, clip_on=False)
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


def _guides(axes: Any, exchange: Exchange, scale: Scale) -> None:
    """A vertical line through all lanes wherever a phase begins or ends."""
    instants = {at for phase in exchange.phases for at in (phase.started_at, phase.ended_at)}
    for at in sorted(instants):
        axes.axvline(scale(at), color=MUTED, linewidth=0.6, linestyle=(0, (2, 2)), zorder=1.5)
    axes.xaxis.grid(True, color=GRID, linewidth=0.6)


def _title(shown: ExchangeLanes) -> str:
    e = shown.exchange
    total = ", ".join(part for part in (result_label(e), format_duration(e.total_ns)) if part)
    return f"#{e.id}  " + " · ".join(p for p in (request_label(e, most=60), host_of(e, shown.connection), total) if p)


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
