"""Service-level objectives: ``total=5000,ttft=1000,p99.total=5000,error=1%`` against what n trials can show.

A quantile goal is a binomial question (how many trials are over the limit?), so three answers exist: met, broken, and "cannot be shown
with n trials". A goal without a quantile is about every single trial, as in httpstat.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from netdiag.errors import UsageError
from netdiag.stats.proportion import lower_bound, trials_needed, upper_bound
from netdiag.units import NS_PER_MS

QUANTITIES: Mapping[str, str] = {
    "total": "total",
    "dns": "dns",
    "tcp": "tcp",
    "connect": "tcp",
    "tls": "tls",
    "send": "send",
    "wait": "wait",
    "ttfb": "first_byte",
    "ttfe": "first_event",
    "ttft": "first_token",
    "transfer": "transfer",
}
"""Spelling on the command line → name in the statistics. ``ttft`` counts from the submission to the first event that carries text."""

_GOAL = re.compile(
    r"(?:p(?P<quantile>\d{1,2}(?:\.\d+)?)\.)?(?P<quantity>[a-z]+)=(?P<limit>\d+(?:\.\d+)?)(?P<percent>%?)"
)


class Answer(StrEnum):
    """What the trials show about a goal, with the confidence of their bounds."""

    MET = "met"
    BROKEN = "broken"
    CANNOT_BE_SHOWN = "cannot-be-shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One objective. ``limit_ns`` is None for an error rate, ``share`` the part of trials that may miss it (0 for "every trial")."""

    text: str
    quantity: str
    limit_ns: int | None
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalResult:
    """What n trials say about a goal."""

    goal: Goal
    answer: Answer
    n: int
    over: int
    """Trials that missed the limit; failed trials count as missed."""
    trials_needed: int | None
    """In all, for a proof with this many misses; None when it is met or broken already, or out of reach."""

    def __str__(self) -> str:
        counted = (
            f"{self.over} of {self.n} over" if self.goal.limit_ns is not None else f"{self.over} of {self.n} failed"
        )
        if self.answer is not Answer.CANNOT_BE_SHOWN:
            return f"{self.goal.text}: {self.answer} ({counted})"
        needed = f"; needs {self.trials_needed} trials" if self.trials_needed else ""
        return f"{self.goal.text}: cannot be shown with n = {self.n} ({counted}{needed})"


def parse_goals(text: str) -> tuple[Goal, ...]:
    """The goals of a comma-separated list; limits are milliseconds, error rates percent.

    Raises ``UsageError`` naming the part that is no goal.
    """
    return tuple(_parse(part.strip()) for part in text.split(",") if part.strip())


def _parse(part: str) -> Goal:
    found = _GOAL.fullmatch(part)
    if found is None:
        raise UsageError(f"{part!r} is no goal", advice="write total=5000, p99.total=5000 (milliseconds) or error=1%")
    quantity, limit = found["quantity"], float(found["limit"])
    if quantity == "error":
        if not found["percent"] or found["quantile"] or not 0 < limit < 100:
            raise UsageError(f"{part!r}: an error goal is a percentage between 0 and 100, such as error=1%")
        return Goal(text=part, quantity="error", limit_ns=None, share=limit / 100)
    if quantity not in QUANTITIES or found["percent"]:
        raise UsageError(f"{part!r}: known quantities are {', '.join(QUANTITIES)} (milliseconds) and error (percent)")
    quantile = float(found["quantile"]) if found["quantile"] else None
    if quantile is not None and not 0 < quantile < 100:
        raise UsageError(f"{part!r}: a percentile lies between 0 and 100")
    share = 0.0 if quantile is None else round(1 - quantile / 100, 12)
    return Goal(text=part, quantity=QUANTITIES[quantity], limit_ns=round(limit * NS_PER_MS), share=share)


def judge(goal: Goal, durations_ns: Sequence[int], failures: int) -> GoalResult:
    """The answer for one arm: ``durations_ns`` of the trials that succeeded, and how many failed (a failed trial misses every limit)."""
    n = len(durations_ns) + failures
    over = failures if goal.limit_ns is None else failures + sum(d > goal.limit_ns for d in durations_ns)
    if goal.share == 0.0:
        answer = Answer.CANNOT_BE_SHOWN if n == 0 else (Answer.BROKEN if over else Answer.MET)
        return GoalResult(goal=goal, answer=answer, n=n, over=over, trials_needed=None)
    if n and lower_bound(over, n) > goal.share:
        return GoalResult(goal=goal, answer=Answer.BROKEN, n=n, over=over, trials_needed=None)
    if n and upper_bound(over, n) < goal.share:
        return GoalResult(goal=goal, answer=Answer.MET, n=n, over=over, trials_needed=None)
    return GoalResult(
        goal=goal, answer=Answer.CANNOT_BE_SHOWN, n=n, over=over, trials_needed=trials_needed(goal.share, over)
    )
