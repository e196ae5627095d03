"""Every quantity of one exchange by name: what distributions and comparisons are made of."""

from __future__ import annotations

from collections import defaultdict

from netdiag.records.exchange import Exchange


def durations_ns(exchange: Exchange) -> dict[str, int]:
    """Every quantity of one exchange by name: its phases, ``total``, ``unattributed`` and the first-times counted from its beginning."""
    found: dict[str, int] = defaultdict(int)
    for phase in exchange.phases:
        found[str(phase.name)] += phase.duration_ns
    found["total"] = exchange.total_ns
    found["unattributed"] = exchange.unattributed_ns
    found.update(_first_times(exchange))
    return dict(found)


def _first_times(exchange: Exchange) -> dict[str, int]:
    found: dict[str, int] = {}
    answered = next((p.started_at for p in exchange.phases if p.name == "transfer"), None)
    if answered is not None:
        found["first_byte"] = answered - exchange.started_at
    sent = next((p.started_at for p in exchange.phases if p.name == "send"), None)
    if exchange.stream is None or sent is None:
        return found
    for name in ("first_event", "first_token", "first_visible"):
        value = getattr(exchange.stream, f"{name}_ns")
        if value is not None:
            found[name] = sent - exchange.started_at + value
    return found
