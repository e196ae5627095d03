"""The order of a client's requests on their connections: which is the how-manieth, how long was it quiet before, who waited for whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from netdiag.analysis.recorded import opened
from netdiag.records.recording import ClientConnection, ClientRequest


def ordinals_of(requests: Iterable[ClientRequest]) -> dict[int, int]:
    """Place of each request on its connection, in the order in which they were sent."""
    on: dict[int, int] = {}
    places: dict[int, int] = {}
    for request in sorted(
        requests, key=lambda r: (r.first_write_at is None, r.first_write_at or 0, r.stream_id or 0, r.id)
    ):
        if request.connection_id is None:
            places[request.id] = 0
            continue
        places[request.id] = on.get(request.connection_id, 0)
        on[request.connection_id] = places[request.id] + 1
    return places


def idle_of(requests: Iterable[ClientRequest]) -> dict[int, int | None]:
    """How long each request's connection had been idle when it was written; None for the first on it, or where requests overlap."""
    quiet_since: dict[int, int] = {}
    idle: dict[int, int | None] = {}
    for request in sorted(requests, key=lambda r: (r.submitted_at, r.id)):
        before = None if request.connection_id is None else quiet_since.get(request.connection_id)
        at = request.first_write_at
        idle[request.id] = None if before is None or at is None or at < before else at - before
        if request.connection_id is not None:
            quiet_since[request.connection_id] = max(before or 0, request.ended_at)
    return idle


def openers_of(requests: Sequence[ClientRequest], connections: Mapping[int, ClientConnection]) -> dict[int, int]:
    """Request to the one whose set-up it waited for: submitted before the connection was ready, and not the one that opened it."""
    on = {
        r.id: connections[r.connection_id]
        for r in requests
        if r.connection_id is not None and r.connection_id in connections
    }
    opener: dict[int, int] = {}
    for request in requests:
        if request.id in on and opened(request, on[request.id]):
            opener.setdefault(on[request.id].id, request.id)
    return {
        request.id: opener[on[request.id].id]
        for request in requests
        if request.id in on
        and opener.get(on[request.id].id, request.id) != request.id
        and request.submitted_at < _ready_at(on[request.id])
    }


def _ready_at(connection: ClientConnection) -> int:
    """When requests could be written; 0 where no step of the set-up was made."""
    steps = (connection.tcp, connection.proxy, connection.tls)
    return max((step.ended_at for step in steps if step is not None), default=0)
