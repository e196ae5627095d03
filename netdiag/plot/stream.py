"""The arrival line of a streamed answer: event number against time; stalls are flat stretches, catch-up bursts are steep ones."""

from __future__ import annotations

import statistics as stats
from collections.abc import Sequence
from typing import Any

from netdiag.palette import FAILURE, INK, MUTED, STALL_HUES
from netdiag.plot.shapes import add_lines, halo, titles
from netdiag.plot.style import (
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
from netdiag.records.labels import connection_of, exchange_of, host_of, request_label
from netdiag.records.lanes import ExchangeLanes, LaneKind
from netdiag.records.stall_words import cause_word, reason
from netdiag.records.stream import Delivery, EventKind, StreamEvent, StreamStall, StreamTiming
from netdiag.units import format_duration

_MOST_STALLS = 6
_META = frozenset(
    {
        EventKind.PING,
        EventKind.COMMENT,
        EventKind.ROLE,
        EventKind.USAGE,
        EventKind.DONE,
        EventKind.ERROR,
    }
)
_SENT_AGAIN = frozenset({LaneKind.RETRANSMISSION, LaneKind.SPURIOUS})
_DELIVERIES = {Delivery.BUFFERED: "BUFFERED on the way", Delivery.BURSTY: "in regular bursts"}
_TICKS_IN = 0.2
"""Height of one row of ticks."""
_AXES_IN = 0.925 * WIDTH_IN
_STRIP = 0.045
"""Height of the strip of phases, in shares of the axes."""
_STRIP_FONT = 7.5


def arrival(source: Analysis | ExchangeLanes, exchange_id: int = 0) -> Picture:
    """The events of one streamed answer with its schedule, its stalls and their causes; with ``lanes`` also its records and packets.

    Raises ``KeyError`` when there is no such exchange, or it has no events.
    """
    lanes = source if isinstance(source, ExchangeLanes) else None
    exchange = lanes.exchange if lanes is not None else exchange_of(source, exchange_id)  # type: ignore[arg-type]
    if exchange is None or exchange.stream is None or not exchange.stream.timeline:
        raise KeyError(f"exchange {exchange_id} has no events")
    connection = None if isinstance(source, ExchangeLanes) else connection_of(source, exchange.connection_id)
    with settings():
        return _draw(exchange, exchange.stream, lanes, host_of(exchange, connection))


def _draw(exchange: Exchange, stream: StreamTiming, lanes: ExchangeLanes | None, host: str) -> Picture:
    events = stream.timeline
    rows = _tick_rows(events, lanes)
    below_in = 0.62 + _TICKS_IN * len(rows) + 0.12
    height = 4.6 + _TICKS_IN * len(rows)
    picture = new_picture(height)
    axes = picture.add_axes((0.06, below_in / height, 0.925, 1 - (below_in + 0.83) / height))
    unit = TimeUnit(exchange.total_ns)
    origin = exchange.started_at
    right = unit.of(max(exchange.ended_at, events[-1].deliverable_at) - origin) * 1.02
    quiet_axes(axes)
    axes.spines["left"].set_visible(True)
    axes.set_xlim(0, right)
    axes.set_ylim(-0.09 * len(events), len(events) * 1.06)
    axes.xaxis.set_major_formatter(thousands)
    axes.set_ylabel("event")
    _phases_below(axes, exchange, unit)
    times = [unit.of(event.deliverable_at - origin) for event in events]
    _schedule(axes, stream, unit, origin)
    axes.step(times, range(1, len(events) + 1), where="post", color=hue("send"), linewidth=1.4, zorder=4)
    _marks(axes, events, times, unit)
    _stalls(axes, stream, unit, origin)
    ticks = picture.add_axes((0.06, 0.62 / height, 0.925, (_TICKS_IN * len(rows)) / height)) if rows else axes
    if rows:
        axes.tick_params(axis="x", labelbottom=False)
        _ticks(ticks, rows, unit, origin, right)
    ticks.set_xlabel(f"time since the request began ({unit.name})")
    label = request_label(exchange, most=60)
    titles(picture, f"#{exchange.id}  {label} · {host}" if label else f"#{exchange.id}  {host}", _facts(stream))
    return picture


def _phases_below(axes: Any, exchange: Exchange, unit: TimeUnit) -> None:
    """The phases as a strip under the line, so that the wait for the first event has its owner."""
    for phase in exchange.phases:
        left, right = (unit.of(at - exchange.started_at) for at in (phase.started_at, phase.ended_at))
        name = str(phase.name)
        axes.axvspan(left, right, ymin=0.0, ymax=_STRIP, color=hue(name), linewidth=0, zorder=3)
        if (right - left) / axes.get_xlim()[1] * _AXES_IN > (len(name) + 1) * points_per_character(_STRIP_FONT) / 72:
            place: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "center_baseline"}
            axes.text((left + right) / 2, _STRIP / 2, name, color=ink_on(name), fontsize=_STRIP_FONT, zorder=4, **place)
    axes.axhline(0, color=MUTED, linewidth=0.7, zorder=2)


def _schedule(axes: Any, stream: StreamTiming, unit: TimeUnit, origin: int) -> None:
    """Dashed: the pace between the stalls, each stretch by its own robust line. Where a stretch lies on the one before, the schedule held."""
    collected = stream.buffering is not None and stream.buffering.verdict in _DELIVERIES
    for stretch in [] if collected else _stretches(stream):
        if len(stretch) < 3:
            continue
        line = _robust_line([e.deliverable_at - origin for e in stretch], [e.index + 1 for e in stretch])
        if line is None:
            continue
        per_event, start = line
        top = stream.timeline[-1].index + 1
        ends = (stretch[0].index + 1, min(top, stretch[-1].index + 1 + max(3, len(stretch) // 3)))
        axes.plot(
            [unit.of(round(start + per_event * i)) for i in ends],
            ends,
            color=INK,
            linewidth=0.8,
            dashes=(5, 4),
            alpha=0.55,
            zorder=3,
        )


def _stretches(stream: StreamTiming) -> list[list[StreamEvent]]:
    """Events with text between stalls."""
    breaks = {stall.after_event for stall in stream.stalls}
    found: list[list[StreamEvent]] = [[]]
    for event in stream.timeline:
        if event.kind not in _META and event.seen_at == event.deliverable_at:
            found[-1].append(event)
        if event.index in breaks:
            found.append([])
    return found


def _robust_line(at: Sequence[int], index: Sequence[int]) -> tuple[float, float] | None:
    """Time per event and time of event 0: the median of slopes over half the stretch, and of intercepts."""
    half = max(1, len(at) // 2)
    slopes = [(b - a) / (j - i) for a, b, i, j in zip(at, at[half:], index, index[half:], strict=False) if j > i]
    if not slopes:
        return None
    per_event = stats.median(slopes)
    return per_event, stats.median(t - per_event * i for t, i in zip(at, index, strict=True))


def _marks(axes: Any, events: Sequence[StreamEvent], times: Sequence[float], unit: TimeUnit) -> None:
    for meta, colour, marker, size in ((False, hue("send"), "o", 12), (True, MUTED, "|", 42)):
        chosen = [i for i, event in enumerate(events) if (event.kind in _META) == meta]
        axes.scatter(
            [times[i] for i in chosen],
            [i + 1 for i in chosen],
            s=size,
            c=colour,
            marker=marker,
            linewidths=1.2 if meta else 0,
            zorder=5,
        )
    held = [
        ((times[i], i + 1), (times[i] - unit.of(e.deliverable_at - e.seen_at), i + 1))
        for i, e in enumerate(events)
        if e.seen_at < e.deliverable_at
    ]
    add_lines(axes, held, colors=FAILURE, linewidths=1.0, alpha=0.6, zorder=3)


def _stalls(axes: Any, stream: StreamTiming, unit: TimeUnit, origin: int) -> None:
    worst = sorted(stream.stalls, key=lambda s: -s.excess_ns)[:_MOST_STALLS]
    for stall in sorted(worst, key=lambda s: s.started_at):
        colour = STALL_HUES[str(stall.cause)]
        left, right = unit.of(stall.started_at - origin), unit.of(stall.ended_at - origin)
        axes.axvspan(left, right, color=colour, alpha=0.13, linewidth=0, zorder=1)
        at_top = stall.after_event < 0.6 * len(stream.timeline)
        text = f"{_owner(stall)}\n{format_duration(stall.gap_ns)}, usual {format_duration(stall.usual_ns)}\n{reason(stall)}"
        halo(
            axes,
            (left + right) / 2,
            0.975 if at_top else 0.1,
            text,
            ha="center",
            va="top" if at_top else "bottom",
            fontsize=8.5,
            color=colour,
            zorder=6,
            transform=axes.get_xaxis_transform(),
        )


def _owner(stall: StreamStall) -> str:
    return f"stall: {cause_word(stall)}"


_Row = tuple[str, list[tuple[int, str]]]


def _tick_rows(events: Sequence[StreamEvent], lanes: ExchangeLanes | None) -> list[_Row]:
    """Label, and instants with colours: records, packets, what was sent again, and the client's reads, as far as each is known."""
    rows: list[_Row] = []
    records = {e.record: e.deliverable_at for e in events if e.record is not None}
    if records:
        rows.append(("records", [(at, hue("transfer")) for at in records.values()]))
    if lanes is not None:
        rows.append(
            (
                "packets",
                [
                    (p.at, FAILURE if p.kind in _SENT_AGAIN else MUTED)
                    for p in lanes.packets
                    if p.side == "server" and p.payload_bytes
                ],
            )
        )
    reads = {e.read_at for e in events if e.read_at is not None}
    if reads:
        rows.append(("reads", [(at, hue("deliver")) for at in sorted(reads)]))
    return rows


def _ticks(axes: Any, rows: Sequence[_Row], unit: TimeUnit, origin: int, right: float) -> None:
    quiet_axes(axes)
    axes.set_xlim(0, right)
    axes.set_ylim(len(rows), 0)
    axes.set_yticks([i + 0.5 for i in range(len(rows))], [label for label, _ in rows])
    axes.tick_params(axis="y", labelsize=8)
    axes.xaxis.set_major_formatter(thousands)
    for row, (_, marks) in enumerate(rows):
        for colour in dict.fromkeys(colour for _, colour in marks):
            places = [unit.of(at - origin) for at, own in marks if own == colour and at >= origin]
            add_lines(
                axes,
                [((x, row + 0.12), (x, row + 0.88)) for x in places],
                colors=colour,
                linewidths=1.6 if colour == FAILURE else 0.9,
                zorder=5 if colour == FAILURE else 4,
            )


def _facts(stream: StreamTiming) -> str:
    median = f"median gap {format_duration(round(stats.median(stream.gaps_ns)))}" if stream.gaps_ns else ""
    longest = f"longest {format_duration(max(stream.gaps_ns))}" if stream.gaps_ns else ""
    tokens = f"{stream.tokens} tokens (server's usage)" if stream.tokens is not None else "tokens unknown"
    parts = [stream.api or "", f"{stream.events} events, {stream.token_events} with text", median, longest, tokens]
    held = any(e.seen_at < e.deliverable_at for e in stream.timeline)
    delivery = _DELIVERIES.get(stream.buffering.verdict) if stream.buffering is not None else None
    legend = [
        "grey: no text",
        delivery or "dashed: schedule",
        *(["red: held back behind missing octets"] if held else []),
    ]
    return " · ".join(part for part in parts if part) + " · " + "; ".join(legend)
