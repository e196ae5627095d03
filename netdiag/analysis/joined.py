"""One request as all clocks saw it, and the exchange that it becomes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from netdiag.analysis.drafts import NOTHING_READ, path_rtt_ns, said, wait_shares_ns
from netdiag.analysis.marks import Mark, Marks, Milestone
from netdiag.analysis.outcomes import of_whole
from netdiag.analysis.phases import Breakdown, split
from netdiag.analysis.recorded import (
    absences,
)
from netdiag.analysis.reread import marks_of
from netdiag.analysis.stalls import Surroundings
from netdiag.analysis.stream_timing import stream_timing, with_reads
from netdiag.analysis.third_witness import server_report
from netdiag.protocols.turn import Turn, TurnEnd
from netdiag.records.connection import Connection
from netdiag.records.exchange import Exchange, InterimResponse, Outcome
from netdiag.records.recording import ClientConnection, ClientRequest
from netdiag.records.timing import Clock, ClockTimeline, Phase

M = Milestone


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
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


def joined_exchange(seen: Seen, id: int, opener_id: int | None) -> Exchange:
    """What the wire says of it, else what the recording does; and of the phases the best-evidenced."""
    wire_marks, wire_stopped = ({}, None) if seen.wire is None else marks_of(seen.wire)
    breakdown = split(_best(seen, wire_marks), ended=seen.failed)
    base = _identified(seen, seen.wire if seen.wire is not None else _from_recording(seen, breakdown))
    lost_ns = base.wait_loss_ns or 0
    shares = (None, None) if base.answered_early else wait_shares_ns(breakdown, seen.record, lost_ns=lost_ns)
    path_ns, think_ns = shares
    request = seen.request
    if seen.wire is not None:
        breakdown = breakdown._replace(phases=_with_what_held_them_up(breakdown.phases, seen.wire.phases))
    return dataclasses.replace(
        base,
        **breakdown._asdict(),
        id=id,
        connection_id=None if seen.record is None else seen.record.id,
        call_id=request.call_id,
        attempt=request.attempt,
        ordinal=seen.ordinal,
        reused=request.reused,
        wait_path_ns=path_ns,
        wait_think_ns=think_ns,
        wait_think_lo_ns=None
        if think_ns is None or base.wait_think_lo_ns is None
        else min(base.wait_think_lo_ns, think_ns),
        opener_id=opener_id,
        stream=with_reads(base.stream, request.body_reads, rtt_ns=_rtt_ns(seen)),
        clocks=_clocks(seen, wire_marks, wire_stopped),
        arm=request.arm,
        trial=request.trial,
    )


def _with_what_held_them_up(phases: Sequence[Phase], wire: Sequence[Phase]) -> tuple[Phase, ...]:
    """What the packets say of a phase is true of the same phase by several clocks."""
    seen = {phase.name: phase for phase in reversed(wire)}
    return tuple(
        phase
        if (of_wire := seen.get(phase.name)) is None
        else dataclasses.replace(
            phase, loss_ns=of_wire.loss_ns, loss_hi_ns=of_wire.loss_hi_ns, window_ns=of_wire.window_ns
        )
        for phase in phases
    )


def _identified(seen: Seen, base: Exchange) -> Exchange:
    """What the wire could not tell, from the client. It knows why it gave up; the wire knows the rest."""
    request = seen.request
    return dataclasses.replace(
        base,
        method=base.method or request.method,
        authority=base.authority or request.authority,
        path=base.path or request.path,
        protocol=base.protocol or request.protocol,
        stream_id=base.stream_id if base.stream_id is not None else request.stream_id,
        status=base.status if base.status is not None else request.status,
        outcome=_outcome(base, request),
        outcome_detail=request.error or base.outcome_detail,
        server_name=base.server_name or (None if seen.connection is None else seen.connection.sni),
        idle_before_ns=base.idle_before_ns if base.idle_before_ns is not None else seen.idle_ns,
    )


def _outcome(base: Exchange, request: ClientRequest) -> Outcome:
    """That a stream told of an error stands in its octets; for everything else the client has the last word, if it has one."""
    wire_knows = request.outcome is Outcome.OK and base.outcome is Outcome.STREAM_ERROR
    return base.outcome if wire_knows or request.outcome is Outcome.UNKNOWN else request.outcome


def _clocks(seen: Seen, wire_marks: Marks, wire_stopped: Mark | None) -> dict[str, ClockTimeline]:
    """The request by each clock alone."""
    clocks = {"application": _timeline(seen.application, seen.failed)}
    if not seen.stamped_late:
        clocks["kernel"] = _timeline(seen.kernel, seen.failed)
    if wire_marks:
        clocks["wire"] = _timeline(wire_marks, wire_stopped)
    return clocks


def _timeline(marks: Marks, ended: Mark | None) -> ClockTimeline:
    return ClockTimeline(**split(marks, ended=ended)._asdict())


def _around(seen: Seen) -> Surroundings:
    operations = () if seen.connection is None else seen.connection.operations
    return Surroundings(rtt_ns=_rtt_ns(seen), absences=absences(operations), stamped_late=seen.stamped_late)


def _rtt_ns(seen: Seen) -> int | None:
    return None if seen.record is None else path_rtt_ns(seen.record)


def _best(seen: Seen, wire: Marks) -> Marks:
    """Milestone by milestone the best evidence; the application's own reading is the end."""
    marks = {**seen.application, **seen.kernel, **wire}
    read_at = seen.request.last_read_at
    if read_at is not None and M.RESPONSE_LAST in marks and seen.failed is None:
        marks[M.READ_LAST] = Mark(read_at, None, Clock.APPLICATION)
    return marks


def _from_recording(seen: Seen, breakdown: Breakdown) -> Exchange:
    """What an exchange says when no packet of it was captured."""
    request, turn = seen.request, seen.turn or NOTHING_READ
    interim = tuple(InterimResponse(status=i.status, at=i.moment.deliverable_at) for i in turn.interim)
    return Exchange(
        id=0,
        connection_id=None,
        **said(turn),
        interim=interim or request.interim,
        outcome=of_whole(turn) if turn.end is TurnEnd.COMPLETE else Outcome.UNKNOWN,
        request_bytes=turn.request_bytes if seen.turn is not None else request.request_bytes,
        response_bytes=turn.response_bytes if seen.turn is not None else request.response_bytes,
        response_headers=turn.response_headers or request.response_headers,
        **breakdown._asdict(),
        stream=stream_timing(turn, _around(seen)),
        server_report=server_report(turn),
    )
