"""Goals: what n trials can prove, and what they cannot."""

from __future__ import annotations

import pytest

from netdiag.errors import UsageError
from netdiag.stats.goals import Answer, judge, parse_goals

MS = 1_000_000


def test_goals_are_read_as_httpstat_and_k6_users_write_them():
    total, p99, error = parse_goals("total=5000,p99.total=5000,error=1%")
    assert (total.quantity, total.limit_ns, total.share) == ("total", 5000 * MS, 0.0)
    assert (p99.limit_ns, p99.share) == (5000 * MS, pytest.approx(0.01))
    assert (error.quantity, error.limit_ns, error.share) == ("error", None, pytest.approx(0.01))


@pytest.mark.parametrize(
    "text", ["total", "total=x", "speed=5", "error=1", "error=0%", "p0.total=5", "total=5%", "p99.error=1%"]
)
def test_what_is_no_goal_is_named(text):
    with pytest.raises(UsageError, match=text.split("=")[0]):
        parse_goals(text)


def test_one_slow_trial_breaks_a_goal_about_every_trial():
    (goal,) = parse_goals("total=100")
    assert judge(goal, [90 * MS, 99 * MS], 0).answer is Answer.MET
    assert judge(goal, [90 * MS, 101 * MS], 0).answer is Answer.BROKEN
    assert judge(goal, [90 * MS], 1).answer is Answer.BROKEN


def test_fifty_clean_trials_cannot_show_a_p99_and_three_hundred_can():
    (goal,) = parse_goals("p99.total=5000")
    fifty = judge(goal, [1000 * MS] * 50, 0)
    assert (fifty.answer, fifty.trials_needed) == (Answer.CANNOT_BE_SHOWN, 299)
    assert "cannot be shown with n = 50" in str(fifty)
    assert judge(goal, [1000 * MS] * 300, 0).answer is Answer.MET


def test_three_failures_in_three_hundred_neither_show_nor_break_one_percent():
    (goal,) = parse_goals("error=1%")
    result = judge(goal, [MS] * 297, 3)
    assert (result.answer, result.over, result.trials_needed) == (Answer.CANNOT_BE_SHOWN, 3, 773)


def test_a_rate_clearly_above_the_goal_breaks_it():
    (goal,) = parse_goals("error=1%")
    assert judge(goal, [MS] * 40, 10).answer is Answer.BROKEN


def test_no_trial_shows_nothing():
    for goal in parse_goals("total=5,p99.total=5,error=1%"):
        assert judge(goal, [], 0).answer is Answer.CANNOT_BE_SHOWN
