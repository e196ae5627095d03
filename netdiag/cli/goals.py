"""``--slo``: goals against what the trials can show, per arm; broken ones are exit code 4."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange
from netdiag.stats.distribution import arm_of, durations_ns
from netdiag.stats.goals import Answer, Goal, GoalResult, judge

if TYPE_CHECKING:
    from netdiag.export.terminal.page import Page

EXIT_BROKEN = 4

Judged = list[tuple[str, GoalResult]]
"""Arm and result."""


def judge_all(analysis: Analysis, goals: tuple[Goal, ...]) -> Judged:
    """Every goal for every arm. Trials that statistics leave out although they succeeded (a first round) do not count."""
    left_out = {e.exchange_id for s in analysis.statistics for e in s.excluded}
    arms: dict[str, list[Exchange]] = defaultdict(list)
    for exchange in analysis.exchanges:
        if exchange.failed or exchange.id not in left_out:
            arms[arm_of(exchange)].append(exchange)
    return [(arm, _judged(goal, arms[arm])) for arm in sorted(arms) for goal in goals]


def _judged(goal: Goal, exchanges: list[Exchange]) -> GoalResult:
    good = [durations_ns(exchange) for exchange in exchanges if not exchange.failed]
    # An error rate needs no quantity; a quantity that a trial does not have (tls on a warm connection) says nothing about its goal.
    values = [d.get("total" if goal.limit_ns is None else goal.quantity) for d in good]
    failures = sum(exchange.failed for exchange in exchanges)
    return judge(goal, [value for value in values if value is not None], failures)


def exit_code(judged: Judged) -> int:
    """4 when any goal is broken; what cannot be shown is not broken."""
    return EXIT_BROKEN if any(result.answer is Answer.BROKEN for _, result in judged) else 0


def describe(page: Page, judged: Judged) -> None:
    """One line per arm and goal."""
    from netdiag.export.terminal.page import BAD, GOOD, STRONG
    from netdiag.records.labels import arm_name

    styles = {Answer.MET: GOOD, Answer.BROKEN: BAD, Answer.CANNOT_BE_SHOWN: STRONG}
    for arm, result in judged:
        page.wrapped(0, f"goal  {arm_name(arm)}  ", (str(result), styles[result.answer]))
