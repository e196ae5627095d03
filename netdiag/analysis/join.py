"""A probe's recording joined with the capture made at the same time, or standing for itself where there is none.

Every request becomes one exchange with up to three clocks beside each other: application, kernel, wire. ``phases`` is the best-evidenced
one: for each milestone the wire's instant, else the kernel's, else the application's; what only the client knows (waiting for a
connection, reading what had arrived) is laid around it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from netdiag.analysis.calls import calls_of
from netdiag.analysis.clocks import align
from netdiag.analysis.joined import Seen, joined_exchange
from netdiag.analysis.matching import Matches, match
from netdiag.analysis.recorded import (
    Heard,
    application_marks,
    connection_record,
    hear,
    operation_marks,
)
from netdiag.analysis.request_order import idle_of, openers_of, ordinals_of
from netdiag.records.analysis import Analysis
from netdiag.records.anomaly import Anomaly
from netdiag.records.connection import Connection, Vantage
from netdiag.records.exchange import Exchange
from netdiag.records.recording import Recording
from netdiag.records.source import Source
from netdiag.records.timing import Clock


def join(analysis: Analysis, recording: Recording) -> Analysis:
    """The capture's analysis with the client's requests laid over its exchanges: request ``i`` is exchange ``i``.

    Exchanges of the capture that no request explains (another program's) follow; attempts of an address race are in the calls.
    """
    recording, anomalies = align(recording)
    matches = match(analysis.connections, analysis.exchanges, recording)
    heard = hear(recording, Clock.KERNEL)
    exchanges = _requests(recording, heard, matches, analysis.connections)
    rest = [dataclasses.replace(e, id=len(exchanges) + i, opener_id=None) for i, e in enumerate(matches.unexplained)]
    return dataclasses.replace(
        analysis,
        connections=_with_kernel(analysis.connections, recording, matches.connections),
        exchanges=(*exchanges, *rest),
        calls=calls_of(recording, exchanges),
        anomalies=(*analysis.anomalies, *anomalies),
    )


def _with_kernel(
    connections: Sequence[Connection], recording: Recording, places: Mapping[int, int]
) -> tuple[Connection, ...]:
    """Our own connections with what their sockets said; the capture was taken at their client."""
    known = {places[one.id]: one.tcp_info for one in recording.connections if one.id in places}
    return tuple(
        dataclasses.replace(c, vantage=Vantage.CLIENT, kernel=known[c.id]) if c.id in known else c for c in connections
    )


def without_packets(recording: Recording, source: Source) -> Analysis:
    """The same from the recording alone (levels L0 and L1): its writes and reads stand in for packets."""
    recording, anomalies = align(recording)
    heard = hear(recording, Clock.KERNEL)
    connections: list[Connection] = []
    places: dict[int, int] = {}
    for one in recording.connections:
        record = connection_record(one, len(connections), heard.get(one.id))
        if record is not None:
            places[one.id] = record.id
            connections.append(record)
    exchanges = _requests(recording, heard, Matches(connections=places, exchanges={}, unexplained=()), connections)
    return Analysis(
        source=source,
        connections=tuple(connections),
        exchanges=exchanges,
        calls=calls_of(recording, exchanges),
        anomalies=(*anomalies, *_said_wrong(heard, places)),
    )


def _said_wrong(heard: Mapping[int, Heard], places: Mapping[int, int]) -> Iterable[Anomaly]:
    """What the peers said against their protocols, by the number of the connection; reads have no frame numbers."""
    for id_, one in heard.items():
        for anomaly in one.dialogue.anomalies if id_ in places else ():
            yield dataclasses.replace(anomaly, connection_id=places[id_], packet=None)


def _requests(
    recording: Recording, heard: Mapping[int, Heard], matches: Matches, connections: Sequence[Connection]
) -> tuple[Exchange, ...]:
    by_id = {c.id: c for c in recording.connections}
    ordinals, idle = ordinals_of(recording.requests), idle_of(recording.requests)
    openers = openers_of(recording.requests, by_id)
    places = {request.id: place for place, request in enumerate(recording.requests)}
    done: list[Exchange] = []
    for place, request in enumerate(recording.requests):
        connection = None if request.connection_id is None else by_id.get(request.connection_id)
        marks, failed = application_marks(request, connection)
        said = None if connection is None else heard.get(connection.id)
        kernel, turn = operation_marks(request, ordinals[request.id], connection, said)
        record_id = None if connection is None else matches.connections.get(connection.id)
        seen = Seen(
            request=request,
            ordinal=ordinals[request.id],
            idle_ns=idle[request.id],
            connection=connection,
            record=None if record_id is None else connections[record_id],
            wire=matches.exchanges.get(request.id),
            turn=turn,
            application=marks,
            kernel=kernel,
            failed=failed,
        )
        opener = openers.get(request.id)
        done.append(joined_exchange(seen, place, None if opener is None else places[opener]))
    return tuple(done)
