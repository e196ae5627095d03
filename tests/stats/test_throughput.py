"""Requests and octets per second of the time in flight; failures with their interval."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.records.exchange import Outcome
from netdiag.stats.distribution import statistics
from netdiag.stats.throughput import covered_ns, throughput
from netdiag.units import NS_PER_MS
from tests.support.fabricated import exchange

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)).map(lambda p: (p[0], p[0] + p[1])), max_size=12)


@given(SPANS)
def test_covered_time_is_that_of_a_ruler(spans: list[tuple[int, int]]) -> None:
    assert covered_ns(spans) == len({tick for start, end in spans for tick in range(start, end)})


def row(at_ms: float, outcome: Outcome = Outcome.OK, trial: int = 1, **fields: object):  # type: ignore[no-untyped-def]
    return exchange("send 1 | wait 90 | transfer 9", at_ms=at_ms, arm="h1", trial=trial, outcome=outcome, response_bytes=1_000, **fields)  # fmt: skip


def test_pauses_do_not_count_and_parallel_requests_share_their_time() -> None:
    apart = throughput([row(0), row(5_000)])
    together = throughput([row(0), row(0)])
    assert apart is not None
    assert together is not None
    assert (apart.in_flight_ns, together.in_flight_ns) == (200 * NS_PER_MS, 100 * NS_PER_MS)
    assert apart.requests_per_s == pytest.approx(10)
    assert together.requests_per_s == pytest.approx(20)
    assert together.bytes_per_s == pytest.approx(20_000)
    assert throughput([]) is None


def test_failures_move_nothing_and_have_an_interval() -> None:
    found = throughput([row(i * 1_000, Outcome.RESET if i == 0 else Outcome.OK) for i in range(10)])
    assert found is not None
    assert (found.requests, found.failed) == (10, 1)
    assert found.requests_per_s == pytest.approx(9)
    assert found.failed_share_lo == pytest.approx(0.0025, abs=0.0005)  # Clopper and Pearson for 1 of 10
    assert found.failed_share_hi == pytest.approx(0.445, abs=0.0005)


def test_the_first_round_is_left_out_and_a_file_has_none() -> None:
    (probed,) = statistics([row(0, trial=0), row(200), row(400)])
    assert probed.throughput is not None
    assert probed.throughput.requests == 2
    (file,) = statistics([exchange("send 1 | wait 90 | transfer 9")])
    assert file.throughput is None
