"""The small, static, escaped HTML that a notebook shows for an analysis."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from netdiag.sanitise import one_line
from netdiag.units import format_ms

if TYPE_CHECKING:
    from netdiag.records.analysis import Analysis
    from netdiag.records.exchange import Exchange

_MOST_ROWS = 50
_COLUMNS = ("dns", "tcp", "tls", "send", "wait", "transfer")


def summary_html(analysis: Analysis) -> str:
    """A table of the first exchanges with their phases in milliseconds."""
    head = "".join(f"<th>{name}</th>" for name in ("#", "request", "status", *_COLUMNS, "unattributed", "total ms"))
    rows = "".join(_row(exchange) for exchange in analysis.exchanges[:_MOST_ROWS])
    more = len(analysis.exchanges) - _MOST_ROWS
    note = f"<p>… and {more} more exchanges</p>" if more > 0 else ""
    return f"<div><p>{escape(repr(analysis))}</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{note}</div>"


def _row(exchange: Exchange) -> str:
    duration: dict[str, int] = {}
    for phase in exchange.phases:  # a phase comes twice where 100 (Continue) lies between
        duration[str(phase.name)] = duration.get(str(phase.name), 0) + phase.duration_ns
    host = exchange.authority or exchange.server_name or ""
    label = one_line(f"{exchange.method or '?'} {host}{exchange.path or ''}", most=120)
    cells = [str(exchange.id), label, str(exchange.status or exchange.outcome)]
    cells += [format_ms(duration.get(name)) for name in _COLUMNS]
    cells += [format_ms(exchange.unattributed_ns), format_ms(exchange.total_ns)]
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
