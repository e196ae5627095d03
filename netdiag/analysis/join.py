"""A probe's recording joined with the capture made at the same time, or standing for itself where there is none.

Every request becomes one exchange with up to three clocks beside each other: application, kernel, wire. ``phases`` is the best-evidenced
one: for each milestone the wire's instant, else the kernel's, else the application's; what only the client knows (waiting for a
connection, reading what had arrived) is laid around it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from netdiag.analysis.clocks import align
from netdiag.analysis.drafts import NOTHING_READ, path_rtt_ns, wait_shares_ns
from netdiag.analysis.marks import Mark, Marks, Milestone
from netdiag.analysis.matching import Matches, match
from netdiag.analysis.phases import Breakdown, split
from netdiag.analysis.recorded import (
    Heard,
    absences,
    application_marks,
    connection_record,
    hear,
    opened,
    operation_marks,
)
from netdiag.analysis.reread import marks_of
from netdiag.analysis.stalls import Surroundings
from netdiag.analysis.stream_timing import stream_timing, with_reads
from netdiag.analysis.third_witness import server_report
from netdiag.protocols.turn import Turn
from netdiag.records.analysis import Analysis
from netdiag.records.anomaly import Anomaly
from netdiag.records.call import AddressAttempt, Call
from netdiag.records.connection import Connection, Vantage
from netdiag.records.exchange import Exchange, InterimResponse, Outcome
from netdiag.records.recording import ClientConnection, ClientRequest, Recording
from netdiag.records.source import Source
from netdiag.records.timing import Clock, ClockTimeline

M = Milestone
_WHOLE = frozenset({Outcome.OK, Outcome.HTTP_ERROR})


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
        calls=_calls(recording, exchanges),
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
        calls=_calls(recording, exchanges),
        anomalies=(*anomalies, *_said_wrong(heard, places)),
    )


def _said_wrong(heard: Mapping[int, Heard], places: Mapping[int, int]) -> Iterable[Anomaly]:
    """What the peers said against their protocols, by the number of the connection; reads have no frame numbers."""
    for id_, one in heard.items():
        for anomaly in one.dialogue.anomalies if id_ in places else ():
            yield dataclasses.replace(anomaly, connection_id=places[id_], packet=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """One request as all clocks saw it."""

    request: ClientRequest
    ordinal: int
    idle_ns: int | None
    connection: ClientConnection | None
    record: Connection | None
    wire: Exchange | None
    turn: Turn | None
    application: Marks
    kernel: Marks
    failed: Mark | None

    @property
    def stamped_late(self) -> bool:
        """Octets have no better instant than that of the application's read."""
        return not any(mark.clock is Clock.KERNEL for mark in self.kernel.values())


def _requests(
    recording: Recording, heard: Mapping[int, Heard], matches: Matches, connections: Sequence[Connection]
) -> tuple[Exchange, ...]:
    by_id = {c.id: c for c in recording.connections}
    ordinals, idle = ordinals_of(recording.requests), idle_of(recording.requests)
    openers = _openers(recording.requests, by_id)
    places = {request.id: place for place, request in enumerate(recording.requests)}
    done: list[Exchange] = []
    for place, request in enumerate(recording.requests):
        connection = None if request.connection_id is None else by_id.get(request.connection_id)
        marks, failed = application_marks(request, connection)
        said = None if connection is None else heard.get(connection.id)
        kernel, turn = operation_marks(request, ordinals[request.id], connection, said)
        record_id = None if connection is None else matches.connections.get(connection.id)
        seen = _Seen(
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
        done.append(_exchange(seen, place, None if opener is None else places[opener]))
    return tuple(done)


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


def _openers(requests: Sequence[ClientRequest], connections: Mapping[int, ClientConnection]) -> dict[int, int]:
    """Request to the one whose set-up it waited for: submitted before the connection was ready, and not the one that opened it."""
    opener: dict[int, int] = {}
    for request in requests:
        connection = connections.get(request.connection_id if request.connection_id is not None else -1)
        if connection is not None and opened(request, connection):
            opener.setdefault(connection.id, request.id)
    waited: dict[int, int] = {}
    for request in requests:
        connection = connections.get(request.connection_id if request.connection_id is not None else -1)
        if connection is None or connection.id not in opener or opener[connection.id] == request.id:
            continue
        ready_at = max(
            (s.ended_at for s in (connection.tcp, connection.proxy, connection.tls) if s is not None), default=0
        )
        if request.submitted_at < ready_at:
            waited[request.id] = opener[connection.id]
    return waited


def _exchange(seen: _Seen, id: int, opener_id: int | None) -> Exchange:
    wire_marks, wire_stopped = ({}, None) if seen.wire is None else marks_of(seen.wire)
    best = _best(seen, wire_marks)
    breakdown = split(best, ended=seen.failed)
    clocks = {"application": _timeline(split(seen.application, ended=seen.failed))}
    if seen.kernel and any(m.clock is Clock.KERNEL for m in seen.kernel.values()):
        clocks["kernel"] = _timeline(split(seen.kernel, ended=seen.failed))
    if seen.wire is not None and wire_marks:
        clocks["wire"] = _timeline(split(wire_marks, ended=wire_stopped))
    path_ns, think_ns = wait_shares_ns(breakdown, seen.record)
    base = seen.wire if seen.wire is not None else _from_recording(seen, breakdown)
    request = seen.request
    return dataclasses.replace(
        base,
        id=id,
        connection_id=None if seen.record is None else seen.record.id,
        call_id=request.call_id,
        attempt=request.attempt,
        ordinal=seen.ordinal,
        reused=request.reused,
        method=base.method or request.method,
        authority=base.authority or request.authority,
        path=base.path or request.path,
        protocol=base.protocol or request.protocol,
        stream_id=base.stream_id if base.stream_id is not None else request.stream_id,
        status=base.status if base.status is not None else request.status,
        outcome=_outcome(request, base),
        outcome_detail=request.error or base.outcome_detail,
        started_at=breakdown.started_at,
        ended_at=breakdown.ended_at,
        total_ns=breakdown.total_ns,
        unattributed_ns=breakdown.unattributed_ns,
        phases=breakdown.phases,
        wait_path_ns=path_ns,
        wait_think_ns=think_ns,
        server_name=base.server_name or (None if seen.connection is None else seen.connection.sni),
        opener_id=opener_id,
        idle_before_ns=base.idle_before_ns if base.idle_before_ns is not None else seen.idle_ns,
        stream=with_reads(base.stream, request.body_reads, rtt_ns=_rtt_ns(seen)),
        clocks=clocks,
        arm=request.arm,
        trial=request.trial,
    )


def _around(seen: _Seen) -> Surroundings:
    operations = () if seen.connection is None else seen.connection.operations
    return Surroundings(rtt_ns=_rtt_ns(seen), absences=absences(operations), stamped_late=seen.stamped_late)


def _rtt_ns(seen: _Seen) -> int | None:
    return None if seen.record is None else path_rtt_ns(seen.record)


def _best(seen: _Seen, wire: Marks) -> Marks:
    """Milestone by milestone the best evidence; the application's own reading is the end."""
    marks = {**seen.application, **seen.kernel, **wire}
    read_at = seen.request.last_read_at
    if read_at is not None and M.RESPONSE_LAST in marks and seen.failed is None:
        marks[M.READ_LAST] = Mark(read_at, None, Clock.APPLICATION)
    return marks


def _outcome(request: ClientRequest, base: Exchange) -> Outcome:
    """The client knows why it gave up; the wire knows the rest."""
    return base.outcome if request.outcome is Outcome.UNKNOWN else request.outcome


def _timeline(breakdown: Breakdown) -> ClockTimeline:
    return ClockTimeline(
        started_at=breakdown.started_at,
        ended_at=breakdown.ended_at,
        total_ns=breakdown.total_ns,
        unattributed_ns=breakdown.unattributed_ns,
        phases=breakdown.phases,
    )


def _from_recording(seen: _Seen, breakdown: Breakdown) -> Exchange:
    """What an exchange says when no packet of it was captured."""
    request, turn = seen.request, seen.turn or NOTHING_READ
    interim = tuple(InterimResponse(status=i.status, at=i.moment.deliverable_at) for i in turn.interim)
    return Exchange(
        id=0,
        connection_id=None,
        stream_id=turn.stream_id,
        protocol=turn.protocol or None,
        method=turn.method,
        scheme=turn.scheme,
        authority=turn.authority,
        path=turn.path,
        status=turn.status,
        grpc_status=turn.grpc_status,
        interim=interim or request.interim,
        request_bytes=turn.request_bytes if seen.turn is not None else request.request_bytes,
        response_bytes=turn.response_bytes if seen.turn is not None else request.response_bytes,
        request_headers=turn.request_headers,
        response_headers=turn.response_headers or request.response_headers,
        trailers=turn.trailers,
        started_at=breakdown.started_at,
        ended_at=breakdown.ended_at,
        total_ns=breakdown.total_ns,
        unattributed_ns=breakdown.unattributed_ns,
        stream=stream_timing(turn, _around(seen)),
        server_report=server_report(turn),
    )


def _calls(recording: Recording, exchanges: Sequence[Exchange]) -> tuple[Call, ...]:
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
