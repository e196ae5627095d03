"""The phase splitter: one table.

Every phase lies between two milestones. Rows are in critical-path order, and a span may only claim time that no span before it has
claimed, so spans are disjoint and ordered and, with ``unattributed_ns``, sum to the total exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from netdiag.analysis.marks import Mark, Marks, Milestone
from netdiag.records.timing import Clock, Method, Phase, PhaseName

M = Milestone


class Breakdown(NamedTuple):
    """``sum(phase.duration_ns) + unattributed_ns == total_ns == ended_at - started_at``."""

    started_at: int
    ended_at: int
    total_ns: int
    unattributed_ns: int
    phases: tuple[Phase, ...]


class Rule(NamedTuple):
    """One row of the splitter. The phase is absent when ``start`` is, or when ``when`` says no."""

    phase: PhaseName
    start: Milestone
    end: Milestone
    never_after: tuple[Milestone, ...] = ()
    """The span ends at the first of these where that is before ``end``."""
    when: Callable[[Marks], bool] | None = None


def holds_body_back(marks: Marks) -> bool:
    """The request waits, or waited, for 100 (Continue) before its body (RFC 9110 section 10.1.1); only then its head has a mark."""
    return M.REQUEST_HEAD_LAST in marks


def sends_at_once(marks: Marks) -> bool:
    """The request's head and body are one piece of sending."""
    return M.REQUEST_HEAD_LAST not in marks


def was_read(marks: Marks) -> bool:
    """The client itself says when it had the last octet."""
    return M.READ_LAST in marks


SET_UP = (M.DNS_QUERY, M.SYN, M.PROXY_ASKED, M.CLIENT_HELLO, M.REQUEST_FIRST)

SPLITTER = (
    Rule(PhaseName.QUEUE, M.SUBMITTED, M.ASSIGNED, SET_UP),
    Rule(PhaseName.DNS, M.DNS_QUERY, M.DNS_ANSWER, (M.SYN,)),
    Rule(PhaseName.TCP, M.SYN, M.SYN_ACK),
    Rule(PhaseName.PROXY, M.PROXY_ASKED, M.PROXY_READY),
    # False Start and early data: the handshake is not over, but no longer what the request waits for.
    Rule(PhaseName.TLS, M.CLIENT_HELLO, M.TLS_FINISHED, (M.REQUEST_FIRST,)),
    Rule(PhaseName.SEND, M.REQUEST_FIRST, M.REQUEST_HEAD_LAST, (M.RESPONSE_FIRST,), holds_body_back),
    Rule(PhaseName.CONTINUE, M.REQUEST_HEAD_LAST, M.CONTINUED, (M.RESPONSE_FIRST,), holds_body_back),
    Rule(PhaseName.SEND, M.REQUEST_BODY_FIRST, M.REQUEST_LAST, (M.RESPONSE_FIRST,), holds_body_back),
    # An answer that begins before the upload ends leaves a wait of 0; the rest of the upload is overlapped by the transfer.
    Rule(PhaseName.SEND, M.REQUEST_FIRST, M.REQUEST_LAST, (M.RESPONSE_FIRST,), sends_at_once),
    Rule(PhaseName.WAIT, M.REQUEST_LAST, M.RESPONSE_FIRST),
    Rule(PhaseName.TRANSFER, M.RESPONSE_FIRST, M.RESPONSE_LAST),
    Rule(PhaseName.DELIVER, M.RESPONSE_LAST, M.READ_LAST, (), was_read),
)

GOES_ON = frozenset({M.TLS_FINISHED, M.CONTINUED, M.REQUEST_BODY_FIRST, M.REQUEST_LAST})
"""What may come after the whole answer and is no part of the exchange any more: the total ends when the last octet could be (or was) read."""

_METHOD_RANK = {Method.EXACT: 0, Method.GRAMMAR: 1, Method.INFERRED: 2, Method.BOUNDED: 3}
_CLOCK_RANK = {Clock.WIRE: 0, Clock.KERNEL: 1, Clock.APPLICATION: 2}


def split(marks: Marks, *, ended: Mark | None = None, held_ns: int | None = None) -> Breakdown:
    """Split one exchange.

    ``held_ns`` becomes each phase's ``loss_ns`` and ``window_ns``: 0 where nothing was held up, None where that is not known (yet).

    ``ended`` is the event that ended the exchange where that is not its last octet: a reset, a time-out, the end of the capture. The
    phase that was going on stops there. Without it the exchange ends with its answer, even if the request's octets go on after it;
    where the answer has no end, at its last milestone. ``marks`` must not be empty.
    """
    started_at = min(mark.at for mark in marks.values())
    stop = ended or max(_enders(marks), key=_instant)
    ended_at = max(stop.at, started_at)
    going_on = None if ended is None else _last_open(marks)
    phases: list[Phase] = []
    cursor = started_at
    for rule in SPLITTER:
        if rule.start not in marks:
            continue
        ends = _ends(rule, marks, stop if rule is going_on else None)
        if ends is None:
            continue
        phase = _span(rule, marks[rule.start], ends, cursor, ended_at, held_ns)
        phases.append(phase)
        cursor = phase.ended_at
    total_ns = ended_at - started_at
    claimed_ns = sum(phase.duration_ns for phase in phases)
    return Breakdown(started_at, ended_at, total_ns, total_ns - claimed_ns, tuple(phases))


def _instant(mark: Mark) -> int:
    return mark.at


def _enders(marks: Marks) -> Iterable[Mark]:
    """The milestones of which the last one ends the exchange."""
    if M.RESPONSE_LAST not in marks:
        return marks.values()
    return (mark for milestone, mark in marks.items() if milestone not in GOES_ON)


def _last_open(marks: Marks) -> Rule | None:
    """The phase that has begun and not ended, provided that none after it has begun."""
    begun = [rule for rule in SPLITTER if rule.start in marks and (rule.when is None or rule.when(marks))]
    if not begun:
        return None
    last = begun[-1]
    return last if last.end not in marks else None


def _ends(rule: Rule, marks: Marks, stop: Mark | None) -> Mark | None:
    """The mark at which the rule's span ends; None when the phase is absent."""
    if rule.start not in marks or (rule.when is not None and not rule.when(marks)):
        return None
    end = marks.get(rule.end, stop)
    limits = [marks[limit] for limit in rule.never_after if limit in marks]
    if end is None:
        # Where the end was not captured, the limit is an end only for what the limit ends by nature: a body still being sent.
        return min(limits, key=_instant) if limits and rule.phase is PhaseName.SEND else None
    return min([end, *limits], key=_instant)


def _span(rule: Rule, start: Mark, end: Mark, cursor: int, ended_at: int, held_ns: int | None) -> Phase:
    begins = min(max(min(start.at, end.at), cursor), ended_at)
    ends = min(max(end.at, begins), ended_at)
    duration_ns = ends - begins
    exact = start.method is Method.EXACT and end.method is Method.EXACT
    lo_ns = duration_ns if exact else min(duration_ns, max(0, end.earliest - max(start.latest, begins)))
    hi_ns = duration_ns if exact else max(duration_ns, end.latest - start.earliest)
    return Phase(
        name=rule.phase,
        started_at=begins,
        ended_at=ends,
        duration_ns=duration_ns,
        clock=max(start.clock, end.clock, key=_CLOCK_RANK.__getitem__),
        method=max(start.method, end.method, key=_METHOD_RANK.__getitem__),
        lo_ns=lo_ns,
        hi_ns=hi_ns,
        first_packet=start.packet if start.at <= end.at else end.packet,
        last_packet=end.packet,
        loss_ns=held_ns,
        window_ns=held_ns,
    )
