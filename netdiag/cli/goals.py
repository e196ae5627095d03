"""``--slo``: goals against what the trials can show, per arm; broken ones are exit code 4."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from netdiag.records.analysis import Analysis
from netdiag.stats.calls import WholeCall, whole_calls
from netdiag.stats.distribution import arm_of
from netdiag.stats.goals import Answer, Goal, GoalResult, judge

if TYPE_CHECKING:
    from netdiag.export.terminal.page import Page

EXIT_BROKEN = 4

Judged = list[tuple[str, GoalResult]]
"""Arm and result."""


def judge_all(analysis: Analysis, goals: tuple[Goal, ...]) -> Judged:
    """Every goal for every arm, about calls: a redirect's hops and a policy's retries are what one answer took. Calls that statistics
    leave out although they succeeded, and first rounds, do not count."""
    left_out = {e.exchange_id for s in analysis.statistics for e in s.excluded}
    arms: dict[str, list[WholeCall]] = defaultdict(list)
    for call in whole_calls(analysis.exchanges):
        if not call.first_round and (call.last.failed or call.last.id not in left_out):
            arms[arm_of(call.last)].append(call)
    return [(arm, _judged(goal, arms[arm])) for arm in sorted(arms) for goal in goals]


def _judged(goal: Goal, calls: list[WholeCall]) -> GoalResult:
    good = [call.durations_ns() for call in calls if not call.last.failed]
    # An error rate needs no quantity; a quantity that a trial does not have (tls on a warm connection) says nothing about its goal.
    values = [d.get("total" if goal.limit_ns is None else goal.quantity) for d in good]
    failures = sum(call.last.failed for call in calls)
    return judge(goal, [value for value in values if value is not None], failures)


def exit_code(judged: Judged) -> int:
    """4 when any goal is broken; what cannot be shown is not broken."""
    return EXIT_BROKEN if any(result.answer is Answer.BROKEN for _, result in judged) else 0


def describe(page: Page, judged: Judged) -> None:
    """One line per arm and goal."""
    from netdiag.export.terminal.page import BAD, GOOD, MUTED, STRONG
    from netdiag.records.labels import arm_name

    styles = {Answer.MET: GOOD, Answer.BROKEN: BAD, Answer.CANNOT_BE_SHOWN: STRONG}
    for arm, result in judged:
        page.wrapped(0, f"goal  {arm_name(arm)}  ", (str(result), styles[result.answer]))
    if any(result.goal.share > 0 for _, result in judged):
        page.wrapped(0, ("shares are of this sitting: calls that follow each other are not independent", MUTED))
