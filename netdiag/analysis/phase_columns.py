"""The phase splitter for many exchanges at once: the same table as ``phases``, applied to columns. Durations only, for statistics.

Milestones are columns of instants with ABSENT where an exchange has none (a packet without time stamp has the instant -1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from netdiag.analysis import phases
from netdiag.analysis.marks import Milestone
from netdiag.analysis.phases import GOES_ON, SPLITTER, Rule
from netdiag.plain import plain
from netdiag.records.timing import PhaseName
from netdiag.wire.tables import NONE, Bool, Int64

_FAR = np.iinfo(np.int64).max
ABSENT = np.iinfo(np.int64).min
"""Not among the milestones."""

MarkColumns = Mapping[Milestone, Int64]


@plain(frozen=True, slots=True, kw_only=True)
class BreakdownColumns:
    """One row per exchange, as ``phases.Breakdown``."""

    started_at: Int64
    ended_at: Int64
    unattributed_ns: Int64
    durations_ns: dict[PhaseName, Int64]
    """By phase, NONE where it is absent; phases that no exchange has are left out."""
    begins_at: dict[PhaseName, Int64]
    """When each (the first of that name) begins; ABSENT where there is none."""

    @property
    def total_ns(self) -> Int64:
        """From the first milestone to the end."""
        return self.ended_at - self.started_at


_CONDITIONS: dict[Callable[..., bool] | None, Callable[[MarkColumns], Bool | bool]] = {
    None: lambda marks: True,
    phases.holds_body_back: lambda marks: has(marks, Milestone.REQUEST_HEAD_LAST),
    phases.sends_at_once: lambda marks: ~np.asarray(has(marks, Milestone.REQUEST_HEAD_LAST)),
    phases.was_read: lambda marks: has(marks, Milestone.READ_LAST),
}
"""The rules' conditions, for columns."""


def has(marks: MarkColumns, milestone: Milestone) -> Bool | bool:
    """Which exchanges have a milestone."""
    return marks[milestone] != ABSENT if milestone in marks else np.bool_(False)  # type: ignore[return-value]


def split_columns(marks: MarkColumns, ended: Int64) -> BreakdownColumns:
    """Split all exchanges; ``ended`` is ABSENT for those that ran to their last milestone. Every exchange has at least one."""
    started_at = np.full(len(ended), _FAR, np.int64)
    last = np.full(len(ended), ABSENT, np.int64)
    for at in marks.values():
        np.minimum(started_at, np.where(at == ABSENT, _FAR, at), out=started_at)
        np.maximum(last, at, out=last)
    ended_at = np.maximum(np.where(ended == ABSENT, _answered(marks, last), ended), started_at)
    going_on = _last_open(marks, ended)
    cursor, laid = started_at.copy(), _Laid(len(ended))
    for number, rule in enumerate(SPLITTER):
        if rule.start not in marks:
            continue
        start = marks[rule.start]
        end = _ends(rule, marks, np.where(going_on == number, ended, ABSENT))
        there = (end != ABSENT) & _applies(rule, marks)
        if not there.any():
            continue
        begin = np.minimum(np.maximum(np.minimum(start, end), cursor), ended_at)
        stop = np.minimum(np.maximum(end, begin), ended_at)
        cursor = np.where(there, stop, cursor)
        laid.add(rule.phase, there, begin, np.where(there, stop - begin, 0))
    return BreakdownColumns(
        started_at=started_at,
        ended_at=ended_at,
        unattributed_ns=ended_at - started_at - laid.claimed_ns,
        durations_ns=laid.durations_ns,
        begins_at=laid.begins_at,
    )


def _answered(marks: MarkColumns, last: Int64) -> Int64:
    """When each exchange ended by itself: with its answer, and with its last milestone where the answer has no end."""
    if Milestone.RESPONSE_LAST not in marks:
        return last
    until = np.full(len(last), ABSENT, np.int64)
    for milestone, at in marks.items():
        if milestone not in GOES_ON:
            np.maximum(until, at, out=until)
    return np.where(has(marks, Milestone.RESPONSE_LAST), until, last)


class _Laid:
    """Spans laid one after the other. A phase may have several: its length is their sum, its beginning that of the first."""

    def __init__(self, count: int) -> None:
        self.claimed_ns = np.zeros(count, np.int64)
        self.durations_ns: dict[PhaseName, Int64] = {}
        self.begins_at: dict[PhaseName, Int64] = {}

    def add(self, phase: PhaseName, there: Bool, begin: Int64, length_ns: Int64) -> None:
        """The span of a phase for the exchanges where it is; ``length_ns`` is 0 for the others."""
        self.claimed_ns += length_ns
        before = self.durations_ns.get(phase)
        if before is None:
            self.durations_ns[phase] = np.where(there, length_ns, NONE)
            self.begins_at[phase] = np.where(there, begin, ABSENT)
        else:
            self.begins_at[phase] = np.where(there & (before == NONE), begin, self.begins_at[phase])
            self.durations_ns[phase] = np.where(there, np.maximum(before, 0) + length_ns, before)


def _applies(rule: Rule, marks: MarkColumns) -> Bool:
    there: Bool = has(marks, rule.start) & _CONDITIONS[rule.when](marks)  # type: ignore[assignment]
    return there


def _last_open(marks: MarkColumns, ended: Int64) -> Int64:
    """Of each exchange that was ended: the number of the rule whose phase stops there; NONE for all others."""
    last = np.full(len(ended), NONE, np.int64)
    stopped = ended != ABSENT
    if not stopped.any():
        return last
    open_ended = np.zeros(len(ended), np.bool_)
    for number, rule in enumerate(SPLITTER):
        begun = _applies(rule, marks)
        last[begun & stopped] = number
        open_ended = np.where(begun, ~np.asarray(has(marks, rule.end)), open_ended)
    return np.where(open_ended, last, NONE)


def _ends(rule: Rule, marks: MarkColumns, stop: Int64) -> Int64:
    """When each span of the rule ends, ABSENT where the phase is absent (``stop``: where it was stopped)."""
    end = marks[rule.end] if rule.end in marks else np.full(len(stop), ABSENT, np.int64)
    end = np.where(end == ABSENT, stop, end)
    limit = np.full(len(stop), _FAR, np.int64)
    for milestone in rule.never_after:
        if milestone in marks:
            np.minimum(limit, np.where(marks[milestone] == ABSENT, _FAR, marks[milestone]), out=limit)
    if rule.phase is PhaseName.SEND:
        end = np.where(end == ABSENT, np.where(limit == _FAR, ABSENT, limit), end)
    return np.where(end == ABSENT, ABSENT, np.minimum(end, limit))
