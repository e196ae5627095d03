"""The arrival line of a streamed answer: event number against time; stalls are flat stretches, catch-up bursts are steep ones."""

from __future__ import annotations

import itertools
import statistics as stats
from collections.abc import Sequence
from typing import Any

from netdiag.palette import FAILURE, MUTED
from netdiag.plot.shapes import add_lines, halo, titles
from netdiag.plot.style import Picture, TimeUnit, hue, new_picture, quiet_axes, settings, thousands
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange
from netdiag.records.labels import connection_of, exchange_of, host_of, request_label
from netdiag.records.stream import EventKind, StreamEvent
from netdiag.units import format_duration

_STALL_FACTOR = 5
"""A gap this many times the median gap is marked as a stall."""
_MOST_STALLS = 6
_FEWEST_GAPS = 4
_META = frozenset(
    {
        EventKind.PING,
        EventKind.COMMENT,
        EventKind.ROLE,
        EventKind.USAGE,
        EventKind.DONE,
        EventKind.OTHER,
        EventKind.ERROR,
    }
)


def arrival(analysis: Analysis, exchange_id: int = 0) -> Picture:
    """The events of one streamed answer. Raises ``KeyError`` when there is no such exchange, or it has no events."""
    exchange = exchange_of(analysis, exchange_id)
    if exchange is None or exchange.stream is None or not exchange.stream.timeline:
        raise KeyError(f"exchange {exchange_id} has no events")
    with settings():
        return _draw(analysis, exchange, exchange.stream.timeline)


def _draw(analysis: Analysis, exchange: Exchange, events: Sequence[StreamEvent]) -> Picture:
    height = 4.6
    picture = new_picture(height)
    axes = picture.add_axes((0.06, 0.62 / height, 0.925, 1 - 1.45 / height))
    unit = TimeUnit(exchange.total_ns)
    origin = exchange.started_at
    quiet_axes(axes)
    axes.spines["left"].set_visible(True)
    axes.set_xlim(0, unit.of(max(exchange.ended_at, events[-1].deliverable_at) - origin) * 1.02)
    axes.set_ylim(-0.09 * len(events), len(events) * 1.04)
    axes.xaxis.set_major_formatter(thousands)
    axes.set_xlabel(f"time since the request began ({unit.name})")
    axes.set_ylabel("event")
    _phases_below(axes, exchange, unit, len(events))
    times = [unit.of(event.deliverable_at - origin) for event in events]
    axes.step(times, range(1, len(events) + 1), where="post", color=hue("send"), linewidth=1.4, zorder=4)
    _marks(axes, events, times)
    _stalls(axes, events, times)
    connection = connection_of(analysis, exchange.connection_id)
    titles(
        picture,
        f"#{exchange.id}  {request_label(exchange, most=60)} · {host_of(exchange, connection)}",
        _facts(exchange),
    )
    return picture


def _phases_below(axes: Any, exchange: Exchange, unit: TimeUnit, count: int) -> None:
    """The phases as a strip under the line, so that the wait for the first event has its owner."""
    for phase in exchange.phases:
        left, right = (unit.of(at - exchange.started_at) for at in (phase.started_at, phase.ended_at))
        axes.axvspan(left, right, ymin=0.0, ymax=0.045, color=hue(str(phase.name)), linewidth=0, zorder=3)
    axes.axhline(0, color=MUTED, linewidth=0.7, zorder=2)


def _marks(axes: Any, events: Sequence[StreamEvent], times: Sequence[float]) -> None:
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
        ((times[i], i + 1), (times[i] - (e.deliverable_at - e.seen_at) / _per_unit(events, times), i + 1))
        for i, e in enumerate(events)
        if e.seen_at < e.deliverable_at
    ]
    add_lines(axes, held, colors=FAILURE, linewidths=1.0, alpha=0.6, zorder=3)


def _per_unit(events: Sequence[StreamEvent], times: Sequence[float]) -> float:
    """Nanoseconds of one unit of the axis."""
    for event, at in zip(reversed(events), reversed(times), strict=True):
        if at > times[0]:
            return (event.deliverable_at - events[0].deliverable_at) / (at - times[0])
    return 1e6


def _stalls(axes: Any, events: Sequence[StreamEvent], times: Sequence[float]) -> None:
    gaps = [later.deliverable_at - earlier.deliverable_at for earlier, later in itertools.pairwise(events)]
    usual = _usual_gap(events)
    if usual is None:
        return
    worst = sorted(range(len(gaps)), key=lambda i: -gaps[i])[:_MOST_STALLS]
    for i in sorted(i for i in worst if gaps[i] >= _STALL_FACTOR * usual):
        axes.axvspan(times[i], times[i + 1], color=FAILURE, alpha=0.09, linewidth=0, zorder=1)
        middle = (times[i] + times[i + 1]) / 2
        text = f"stall\n{format_duration(gaps[i])}"
        halo(axes, middle, i + 0.4, text, ha="center", va="top", fontsize=8.5, color=FAILURE)


def _usual_gap(events: Sequence[StreamEvent]) -> int | None:
    """The median time between arrivals, by when octets were first seen: what was held back and then came at once would pull it to zero.
    None when too few gaps are left to speak of a usual one."""
    seen = sorted(event.seen_at for event in events)
    apart = [later - earlier for earlier, later in itertools.pairwise(seen) if later > earlier]
    return round(stats.median(apart)) if len(apart) >= _FEWEST_GAPS else None


def _facts(exchange: Exchange) -> str:
    stream = exchange.stream
    assert stream is not None
    median = f"median gap {format_duration(round(stats.median(stream.gaps_ns)))}" if stream.gaps_ns else ""
    longest = f"longest {format_duration(max(stream.gaps_ns))}" if stream.gaps_ns else ""
    tokens = f"{stream.tokens} tokens (server's usage)" if stream.tokens is not None else "tokens unknown"
    parts = [stream.api or "", f"{stream.events} events, {stream.token_events} with text", median, longest, tokens]
    return " · ".join(part for part in parts if part) + " · grey: no text; red: held back behind missing octets"
