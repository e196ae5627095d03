"""The small, static, escaped HTML that a notebook shows for an analysis: works on white and on black ground, without script or style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from netdiag.palette import MUTED, PHASE_HUES
from netdiag.records.exchange import Exchange
from netdiag.records.labels import host_of, request_label, result_label
from netdiag.records.timing import Method, PhaseName
from netdiag.units import format_ms

_MOST_ROWS = 50
_BAR_PX = 160
_NUMBER = ' style="text-align:right"'
_WORDS = ' style="text-align:left"'


def summary_html(heading: str, exchanges: Sequence[Exchange]) -> str:
    """The heading, and a table of the first exchanges: every phase that any of them has in milliseconds, and a bar of them on a common
    scale. All text is escaped."""
    shown = exchanges[:_MOST_ROWS]
    present = {str(phase.name) for exchange in shown for phase in exchange.phases}
    phases = [str(name) for name in PhaseName if str(name) in present]
    longest = max((exchange.total_ns for exchange in shown), default=0)
    head = "".join(f"<th{_WORDS}>{name}</th>" for name in ("#", "request", "result"))
    head += "".join(f"<th{_NUMBER}>{name}</th>" for name in (*phases, "unattributed", "total ms"))
    rows = "".join(_row(exchange, phases, longest) for exchange in shown)
    more = len(exchanges) - _MOST_ROWS
    note = f"<p>… and {more:,} more exchanges</p>" if more > 0 else ""
    table = f"<table><thead><tr>{head}<th></th></tr></thead><tbody>{rows}</tbody></table>"
    return f'<div style="overflow-x:auto"><p>{escape(heading)}</p>{table}{note}</div>'


def _row(exchange: Exchange, phases: Sequence[str], longest: int) -> str:
    host = host_of(exchange)
    label = request_label(exchange, host=host) or host
    words = (str(exchange.id), label, result_label(exchange))
    numbers = [_duration(exchange, name) for name in phases]
    numbers += [format_ms(exchange.unattributed_ns), format_ms(exchange.total_ns)]
    cells = "".join(f"<td{_WORDS}>{escape(cell)}</td>" for cell in words)
    cells += "".join(f"<td{_NUMBER}>{escape(cell)}</td>" for cell in numbers)
    return f"<tr>{cells}<td{_WORDS}>{_bar(exchange, longest)}</td></tr>"


def _duration(exchange: Exchange, name: str) -> str:
    """The sum, because a phase comes twice where 100 (Continue) lies between; ``~`` where it is not exact."""
    found = [phase for phase in exchange.phases if phase.name == name]
    if not found:
        return "–"
    mark = "" if all(phase.method is Method.EXACT for phase in found) else "~"
    return mark + format_ms(sum(phase.duration_ns for phase in found))


def _bar(exchange: Exchange, longest: int) -> str:
    """Phases where they lie in time; unattributed time is left empty. One gradient, because a notebook keeps every octet."""
    stops, reached = [], 0
    for phase in exchange.phases:
        begin = max(reached, _px(phase.started_at - exchange.started_at, longest))
        end = max(begin + 1, _px(phase.started_at - exchange.started_at + phase.duration_ns, longest))
        stops += [f"transparent {reached}px {begin}px"] if begin > reached else []
        stops.append(f"{PHASE_HUES.get(str(phase.name), MUTED)} {begin}px {end}px")
        reached = end
    if not stops:
        return ""
    look = f"display:inline-block;height:.7em;width:{reached}px;background:linear-gradient(90deg,{','.join(stops)})"
    return f'<span style="{look}"></span>'


def _px(duration_ns: int, longest: int) -> int:
    return _BAR_PX * duration_ns // max(longest, 1)
