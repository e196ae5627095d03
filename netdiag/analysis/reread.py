"""An exchange's phases read back into milestones, so that another clock's can be laid beside or over them."""

from __future__ import annotations

from collections.abc import Sequence

from netdiag.analysis.marks import Mark, Marks, Milestone
from netdiag.records.exchange import Exchange, Outcome
from netdiag.records.timing import Method, Phase, PhaseName

M = Milestone

_RAN_TO_THE_END = frozenset({Outcome.OK, Outcome.HTTP_ERROR, Outcome.UNKNOWN})

_ENDS = {
    PhaseName.QUEUE: (M.SUBMITTED, M.ASSIGNED),
    PhaseName.DNS: (M.DNS_QUERY, M.DNS_ANSWER),
    PhaseName.TCP: (M.SYN, M.SYN_ACK),
    PhaseName.PROXY: (M.PROXY_ASKED, M.PROXY_READY),
    PhaseName.TLS: (M.CLIENT_HELLO, M.TLS_FINISHED),
    PhaseName.SEND: (M.REQUEST_FIRST, M.REQUEST_LAST),
    PhaseName.CONTINUE: (M.REQUEST_HEAD_LAST, M.CONTINUED),
    PhaseName.WAIT: (M.REQUEST_LAST, M.RESPONSE_FIRST),
    PhaseName.TRANSFER: (M.RESPONSE_FIRST, M.RESPONSE_LAST),
    PhaseName.DELIVER: (M.RESPONSE_LAST, M.READ_LAST),
}
_HEAD_ONLY = (M.REQUEST_FIRST, M.REQUEST_HEAD_LAST)
_BODY_ONLY = (M.REQUEST_BODY_FIRST, M.REQUEST_LAST)


def marks_of(exchange: Exchange) -> tuple[Marks, Mark | None]:
    """The milestones that ``phases.split`` made the exchange's phases from, and where it stopped if it did not run to the end.

    Splitting them again gives the same phases. Bounds are kept as those of each phase's end.
    """
    marks: Marks = {}
    for phase, (start, end) in zip(exchange.phases, _milestones(exchange.phases), strict=True):
        marks.setdefault(start, Mark(phase.started_at, phase.first_packet, phase.clock))
        marks[end] = _end(phase)
    if exchange.outcome in _RAN_TO_THE_END or not exchange.phases:
        return marks, None
    last = exchange.phases[-1]
    stopped = Mark(exchange.ended_at, last.last_packet, last.clock)
    if last.ended_at == exchange.ended_at:
        del marks[_milestones(exchange.phases)[-1][1]]
    return marks, stopped


def _end(phase: Phase) -> Mark:
    if phase.method is Method.EXACT:
        return Mark(phase.ended_at, phase.last_packet, phase.clock)
    lo, hi = phase.started_at + phase.lo_ns, phase.started_at + phase.hi_ns
    return Mark(phase.ended_at, phase.last_packet, phase.clock, phase.method, lo, hi)


def _milestones(phases: Sequence[Phase]) -> list[tuple[Milestone, Milestone]]:
    """Start and end of every phase; a body held back for 100 (Continue) makes two spans of sending."""
    held_back = any(p.name is PhaseName.CONTINUE for p in phases)
    found: list[tuple[Milestone, Milestone]] = []
    for phase in phases:
        ends = _ENDS[phase.name]
        if held_back and phase.name is PhaseName.SEND:
            ends = _BODY_ONLY if _HEAD_ONLY in found else _HEAD_ONLY
        found.append(ends)
    return found
