"""Calls of a recording: each with its attempts, which are exchanges, and the pauses between them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from netdiag.records.call import AddressAttempt, Call
from netdiag.records.exchange import Exchange
from netdiag.records.recording import ClientRequest, Recording


def calls_of(recording: Recording, exchanges: Sequence[Exchange]) -> tuple[Call, ...]:
    """One row per call: its attempts are exchanges, its pauses what the client recorded."""
    recorded = {call.id: call for call in recording.calls}
    attempts: dict[int, list[tuple[ClientRequest, Exchange]]] = {}
    for request, exchange in zip(recording.requests, exchanges, strict=True):
        attempts.setdefault(request.call_id, []).append((request, exchange))
    races = {c.id: c.attempts for c in recording.connections}
    return tuple(_call(id, rows, recorded.get(id), races) for id, rows in sorted(attempts.items()))


def _call(
    id: int,
    rows: list[tuple[ClientRequest, Exchange]],
    known: Call | None,
    races: Mapping[int, tuple[AddressAttempt, ...]],
) -> Call:
    last = rows[-1][1]
    attempts = tuple(exchange.id for _, exchange in rows)
    if known is not None:
        return dataclasses.replace(known, attempts=attempts)
    opening = [r.connection_id for r, _ in rows if r.connection_id is not None and not r.reused]
    return Call(
        id=id,
        url=rows[0][0].url,
        attempts=attempts,
        backoff=(),
        total_ns=max(e.ended_at for _, e in rows) - min(e.started_at for _, e in rows),
        outcome=str(last.outcome),
        policy="none",
        addresses=tuple(a for c in opening for a in races.get(c, ())),
    )
