"""Which connection and which exchange of the capture is which of the probe's: by 4-tuple, then by stream or by order."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from netdiag.records.analysis import Analysis
from netdiag.records.connection import Connection
from netdiag.records.endpoint import Endpoint
from netdiag.records.exchange import Exchange
from netdiag.records.recording import ClientConnection, ClientRequest, Recording

SLACK_NS = 50_000_000
"""Between the application's clock and the capture's for the same event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """What was found."""

    connections: dict[int, int]
    """Connection of the recording to connection of the capture."""
    exchanges: dict[int, Exchange]
    """Request of the recording to exchange of the capture."""
    unexplained: tuple[Exchange, ...]
    """Exchanges that belong to no request and to no address that was tried."""


def match(connections: Sequence[Connection], exchanges: Sequence[Exchange], recording: Recording) -> Matches:
    """Pair a capture's rows with a recording's."""
    same = _connections(connections, recording)
    on: dict[int, list[Exchange]] = defaultdict(list)
    for exchange in exchanges:
        if exchange.connection_id is not None:
            on[exchange.connection_id].append(exchange)
    found: dict[int, Exchange] = {}
    for one in recording.connections:
        place = same.get(one.id)
        if place is not None:
            found.update(_requests([r for r in recording.requests if r.connection_id == one.id], on[place]))
    ours = set(same.values()) | _tried(connections, recording)
    taken = {exchange.id for exchange in found.values()}
    rest = tuple(e for e in exchanges if e.id not in taken and e.connection_id not in ours)
    return Matches(connections=same, exchanges=found, unexplained=rest)


def _connections(connections: Sequence[Connection], recording: Recording) -> dict[int, int]:
    by_tuple: dict[tuple[object, object], list[Connection]] = defaultdict(list)
    for connection in connections:
        by_tuple[connection.client, connection.server].append(connection)
    found: dict[int, int] = {}
    for one in recording.connections:
        candidates = (
            by_tuple.get((one.client, one.server), []) if one.client and one.server else _refused(one, connections)
        )
        near = min(candidates, key=lambda c: abs(c.first_at - _began(one)), default=None)
        if near is not None:
            found[one.id] = near.id
    return found


def _began(one: ClientConnection) -> int:
    starts = [a.started_at for a in one.attempts]
    if one.tcp is not None:
        starts = [one.tcp.started_at]
    return min(starts, default=0)


def _refused(one: ClientConnection, connections: Sequence[Connection]) -> list[Connection]:
    """No local address was kept of an attempt that failed: its server's address and its time have to do. The last attempt counts."""
    tried = [c for c in connections if _is_attempt(c, one)]
    return tried[-1:]


def _is_attempt(connection: Connection, one: ClientConnection) -> bool:
    return any(
        connection.server.address == attempt.address
        and connection.server.port == attempt.port
        and attempt.client_port in (None, connection.client.port)
        and attempt.started_at - SLACK_NS <= connection.first_at <= attempt.ended_at + SLACK_NS
        for attempt in one.attempts
    )


def _tried(connections: Sequence[Connection], recording: Recording) -> set[int]:
    """Connections of the capture that are attempts of an address race; they are told in the calls."""
    return {c.id for c in connections if any(_is_attempt(c, one) for one in recording.connections)}


def ours(analysis: Analysis, recording: Recording) -> Analysis:
    """The capture without what other programs did meanwhile: our connections and address attempts, their exchanges, the names we asked for."""
    ids = set(_connections(analysis.connections, recording).values()) | _tried(analysis.connections, recording)
    places = {c.id: place for place, c in enumerate(c for c in analysis.connections if c.id in ids)}
    exchanges = [e for e in analysis.exchanges if e.connection_id in places]
    numbers = {e.id: number for number, e in enumerate(exchanges)}
    names = _names(recording)
    return dataclasses.replace(
        analysis,
        connections=[dataclasses.replace(c, id=places[c.id]) for c in analysis.connections if c.id in ids],
        exchanges=[
            dataclasses.replace(
                e,
                id=numbers[e.id],
                connection_id=_moved(e.connection_id, places),
                opener_id=_moved(e.opener_id, numbers),
            )
            for e in exchanges
        ],
        resolutions=[
            dataclasses.replace(r, connection_id=_moved(r.connection_id, places))
            for r in analysis.resolutions
            if r.connection_id in places or r.name.lower() in names
        ],
        anomalies=[
            dataclasses.replace(a, connection_id=_moved(a.connection_id, places))
            for a in analysis.anomalies
            if a.connection_id is None or a.connection_id in places
        ],
    )


def of_program(
    connections: Sequence[Connection], pairs: Collection[tuple[Endpoint, Endpoint]], randoms: Collection[str]
) -> tuple[int, ...]:
    """Connections of a program under observation: those of its sockets, and those whose session keys it logged although nobody saw the socket
    (hex ``client_random``). A session that a proxy on this host passes on is captured twice, and only the program's own leg is meant.
    """
    own = {c.id for c in connections if (c.client, c.server) in pairs}
    told = {_random(c) for c in connections if c.id in own}
    for connection in connections:
        random = _random(connection)
        if random is not None and random in randoms and random not in told:
            told.add(random)
            own.add(connection.id)
    return tuple(sorted(own))


def _random(connection: Connection) -> str | None:
    return None if connection.tls is None else connection.tls.client_random


def _moved(number: int | None, places: Mapping[int, int]) -> int | None:
    return None if number is None else places.get(number)


def _names(recording: Recording) -> set[str]:
    """Hosts that our requests name; a resolver's search list may append to them."""
    hosts = {r.authority.rpartition("@")[2].lower() for r in recording.requests}
    return hosts | {host.rpartition(":")[0] for host in hosts if host.rpartition(":")[2].isdigit()}


def _requests(requests: Sequence[ClientRequest], exchanges: Sequence[Exchange]) -> dict[int, Exchange]:
    """Requests of one connection to its exchanges."""
    asked = [e for e in exchanges if e.method != "CONNECT" and not e.pushed]
    by_stream = {e.stream_id: e for e in asked if e.stream_id is not None}
    ordered = sorted(requests, key=lambda r: (r.first_write_at is None, r.first_write_at or 0, r.id))
    found: dict[int, Exchange] = {}
    for place, request in enumerate(ordered):
        by_order = asked[place] if place < len(asked) else None
        exchange = by_stream.get(request.stream_id) if request.stream_id is not None and by_stream else by_order
        if exchange is not None:
            found[request.id] = exchange
    return found
