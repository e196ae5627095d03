"""Two arms' failures beside each other, since their times are of those calls alone that succeeded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netdiag.export.text import report
from netdiag.records.analysis import Analysis
from netdiag.records.statistics import Statistics, Throughput
from tests.support import analyses


def failing(statistics: Statistics, failed: int, of: int = 20) -> Statistics:
    rates = Throughput(
        requests=of,
        failed=failed,
        failed_share_lo=0.0,
        failed_share_hi=1.0,
        response_bytes=0,
        in_flight_ns=0,
        requests_per_s=None,
        bytes_per_s=None,
    )
    return replace(statistics, throughput=rates)


def said(h1: int, h2: int) -> str:
    whole: Analysis = analyses.two_arms()
    first, second = whole.statistics
    changed = replace(whole, statistics=(failing(first, h1), failing(second, h2)))
    return " ".join(" ".join(line.plain.split()) for line in report(changed, width=100))


@pytest.mark.parametrize(
    ("h1", "h2", "verdict"),
    [(0, 10, "more often"), (10, 0, "less often"), (0, 1, "cannot tell"), (3, 3, "cannot tell")],
)
def test_the_interval_of_the_difference_decides(h1: int, h2: int, verdict: str) -> None:
    text = said(h1, h2)
    assert f"failures: HTTP/2 {h2} of 20, HTTP/1.1 {h1} of 20, {verdict}" in text
    assert "95 % of the difference" in text


def test_without_failures_nothing_is_said() -> None:
    assert "failures:" not in said(0, 0)
