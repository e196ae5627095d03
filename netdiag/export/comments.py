"""What netdiag says about single packets, as comments for a capture file."""

from __future__ import annotations

from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange
from netdiag.records.labels import connection_of, host_of, request_label, result_label
from netdiag.records.timing import Method
from netdiag.units import format_duration

_MOST = 1_000
"""Characters of one packet's comment: a packet that ends many streams must not become a book."""


def comments(analysis: Analysis) -> dict[int, str]:
    """By frame number: which phases of which request begin and end here, and how long they took."""
    found: dict[int, list[str]] = {}
    for exchange in analysis.exchanges:
        _of_exchange(analysis, exchange, found)
    return {number: "; ".join(lines)[:_MOST] for number, lines in sorted(found.items())}


def _of_exchange(analysis: Analysis, exchange: Exchange, found: dict[int, list[str]]) -> None:
    host = host_of(exchange, connection_of(analysis, exchange.connection_id))
    if exchange.request_packet is not None:
        unread = exchange.method is None and exchange.path is None
        label = f"request to {host}" if unread else request_label(exchange, host=host, most=200)
        found.setdefault(exchange.request_packet, []).append(f"#{exchange.id} {label}")
    for phase in exchange.phases:
        if phase.first_packet is not None and phase.first_packet != phase.last_packet:
            found.setdefault(phase.first_packet, []).append(f"#{exchange.id} {phase.name} begins")
        if phase.last_packet is not None:
            sure = "" if phase.method is Method.EXACT else "~"
            ends = f"#{exchange.id} {phase.name} ends after {sure}{format_duration(phase.duration_ns)}"
            found.setdefault(phase.last_packet, []).append(ends)
    result = result_label(exchange)
    if exchange.response_packet is not None:
        found.setdefault(exchange.response_packet, []).append(
            f"#{exchange.id} response{f': {result}' if result else ''}"
        )
