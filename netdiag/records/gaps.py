"""Time of an exchange that no phase covers."""

from __future__ import annotations

from netdiag.records.exchange import Exchange


def gaps(exchange: Exchange) -> list[tuple[int, int]]:
    """The spans of an exchange that no phase covers."""
    found, at = [], exchange.started_at
    for phase in exchange.phases:
        if phase.started_at > at:
            found.append((at, phase.started_at))
        at = max(at, phase.ended_at)
    if exchange.ended_at > at:
        found.append((at, exchange.ended_at))
    return found
