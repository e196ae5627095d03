"""The small, static, escaped HTML that a notebook shows for an analysis."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from netdiag.records.exchange import Exchange
from netdiag.sanitise import one_line
from netdiag.units import format_ms

_MOST_ROWS = 50
_COLUMNS = ("dns", "tcp", "tls", "send", "wait", "transfer")


def summary_html(heading: str, exchanges: Sequence[Exchange]) -> str:
    """The heading, and a table of the first exchanges with their phases in milliseconds. Both are escaped."""
    head = "".join(f"<th>{name}</th>" for name in ("#", "request", "status", *_COLUMNS, "unattributed", "total ms"))
    rows = "".join(_row(exchange) for exchange in exchanges[:_MOST_ROWS])
    more = len(exchanges) - _MOST_ROWS
    note = f"<p>… and {more} more exchanges</p>" if more > 0 else ""
    return (
        f"<div><p>{escape(heading)}</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{note}</div>"
    )


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
