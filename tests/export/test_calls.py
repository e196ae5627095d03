"""What the report says of calls of several attempts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netdiag.export.terminal.calls import calls_of_several_attempts
from netdiag.export.terminal.page import Page
from netdiag.export.terminal.summary import _difference_of, summary
from netdiag.records.exchange import Outcome
from netdiag.stats.distribution import statistics
from tests.support import analyses


def said(whole: object) -> str:
    page = Page(200, ascii_only=False)
    calls_of_several_attempts(page, whole)  # type: ignore[arg-type]
    return "\n".join(line.plain for line in page.lines)


def test_a_retried_call_with_the_three_shares_of_its_time() -> None:
    line = said(analyses.retried())
    assert "1 of 1 call ok, 2 attempts a call" in line
    shares = [int(word) for word in line.split() if word.isdigit()][-3:]
    assert sum(shares) in (99, 100, 101)
    assert shares[1] > 50  # half a second of back-off in 0.8


def test_a_call_that_failed_in_the_end_is_not_ok() -> None:
    whole = analyses.retried()
    first, last = whole.exchanges
    failed = replace(whole, exchanges=(first, replace(last, outcome=Outcome.HTTP_ERROR, status=503)))
    assert "0 of 1 call ok" in said(failed)


@pytest.mark.parametrize("whole", [analyses.one_request(), analyses.two_arms()])
def test_nothing_where_each_call_has_one_attempt(whole: object) -> None:
    assert said(whole) == ""


def test_the_table_says_from_where_its_columns_count() -> None:
    page = Page(200, ascii_only=False)
    streamed = analyses.streamed().exchanges[0]
    both = (streamed, replace(streamed, id=1))
    summary(page, replace(analyses.streamed(), exchanges=both, statistics=statistics(both)))
    text = "\n".join(line.plain for line in page.lines)
    assert "1st event, 1st token: from the beginning of the request" in text
    assert "call:" not in text


@pytest.mark.parametrize(
    ("arm_a", "arm_b", "shown"),
    [
        ("h1", "h2", "h2 − h1"),
        ("h1", "h2+warm+stream", "h2+warm+str… − h1"),
        ("localhost:18977 h1", "localhost:18979 h1", "…st:18979 h1 − …st:18977 h1"),
    ],
)
def test_two_arms_in_a_row_are_told_apart(arm_a: str, arm_b: str, shown: str) -> None:
    assert _difference_of(arm_a, arm_b) == shown
