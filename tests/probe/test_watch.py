"""The watch: schedule, lag, patience, and an end without loose ends. The trial itself is played by a function."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from netdiag.errors import UsageError
from netdiag.probe.plan import ProbeConfig
from netdiag.probe.watch import WatchPlan, asked_wait_s, watch
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange, Outcome
from tests.support.fabricated import analysis, exchange

CONFIG = ProbeConfig(urls=("https://localhost/",), arms=("h1",), trials=1)


def answer(status: int = 200, **fields: object) -> Analysis:
    outcome = Outcome.OK if status < 400 else Outcome.HTTP_ERROR
    return analysis(exchanges=[replace(exchange("wait 1"), status=status, outcome=outcome, arm="h1", **fields)])


def run(plan: WatchPlan, measure, stop: threading.Event | None = None):
    return list(watch(plan, measure, stop or threading.Event()))


def test_ticks_come_in_order_at_their_interval():
    begun: list[float] = []

    def measure(_config: ProbeConfig) -> Analysis:
        begun.append(time.monotonic())
        return answer()

    ticks = run(WatchPlan(config=CONFIG, every_s=0.25, count=3), measure)
    assert [t.number for t in ticks] == [1, 2, 3]
    assert [round(b - begun[0], 1) for b in begun] == [0.0, pytest.approx(0.25, abs=0.06), pytest.approx(0.5, abs=0.06)]
    assert [t.analysis.exchanges[0].trial for t in ticks] == [1, 2, 3]


def test_a_slow_trial_makes_the_next_late_and_the_lag_says_so():
    def measure(_config: ProbeConfig) -> Analysis:
        time.sleep(0.4)
        return answer()

    first, second = run(WatchPlan(config=CONFIG, every_s=0.25, count=2), measure)
    assert first.lag_ns < 50_000_000
    assert 100_000_000 < second.lag_ns < 300_000_000


def test_no_burst_makes_up_for_a_slow_trial():
    begun: list[float] = []

    def measure(_config: ProbeConfig) -> Analysis:
        begun.append(time.monotonic())
        if len(begun) == 1:
            time.sleep(0.9)
        return answer()

    first, second, third, _ = run(WatchPlan(config=CONFIG, every_s=0.25, count=4), measure)
    assert second.lag_ns > 500_000_000 > 200_000_000 > max(first.lag_ns, third.lag_ns)
    assert begun[2] - begun[1] > 0.2
    assert begun[3] - begun[2] > 0.2


def test_an_open_loop_does_not_wait_for_slow_trials():
    def measure(_config: ProbeConfig) -> Analysis:
        time.sleep(0.4)
        return answer()

    started = time.monotonic()
    ticks = run(WatchPlan(config=CONFIG, per_second=20, count=6), measure)
    assert time.monotonic() - started < 1.2
    assert max(t.lag_ns for t in ticks) < 200_000_000


def test_a_refusal_is_obeyed():
    answers = iter([answer(429, response_headers=(("retry-after", "0.6"),)), answer(), answer(), answer()])
    ticks = run(WatchPlan(config=CONFIG, every_s=0.25, count=4), lambda _config: next(answers))
    assert [t.analysis is None for t in ticks] == [False, True, True, False]
    assert "asked to wait" in (ticks[1].skipped or "")


def test_a_trial_that_fails_as_a_whole_is_a_line_and_the_watch_goes_on():
    answers = iter([UsageError("no such thing"), answer()])

    def measure(_config: ProbeConfig) -> Analysis:
        given = next(answers)
        if isinstance(given, Exception):
            raise given
        return given

    first, second = run(WatchPlan(config=CONFIG, every_s=0.25, count=2), measure)
    assert first.skipped == "no trial: no such thing"
    assert second.analysis is not None


def test_stop_ends_it_soon_and_leaves_no_thread():
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    before = threading.active_count()
    started = time.monotonic()
    ticks = run(WatchPlan(config=CONFIG, every_s=5.0), lambda _config: answer(), stop)
    assert len(ticks) == 1
    assert time.monotonic() - started < 1.5
    time.sleep(0.1)
    assert not [t for t in threading.enumerate() if t.name.startswith("watch")]
    assert threading.active_count() <= before


def test_at_an_interval_a_trial_that_hangs_can_be_interrupted():
    """It is in the caller's thread, which is where Python delivers a ^C."""
    threads: list[threading.Thread] = []

    def measure(_config: ProbeConfig) -> Analysis:
        threads.append(threading.current_thread())
        if len(threads) == 2:
            raise KeyboardInterrupt
        return answer()

    ticks = watch(WatchPlan(config=CONFIG, every_s=0.25), measure, threading.Event())
    assert next(ticks).number == 1
    with pytest.raises(KeyboardInterrupt):
        next(ticks)
    assert set(threads) == {threading.current_thread()}


def test_the_trial_in_flight_at_the_end_is_told():
    stop = threading.Event()

    def measure(_config: ProbeConfig) -> Analysis:
        stop.set()
        return answer()

    for plan in (WatchPlan(config=CONFIG, every_s=5.0), WatchPlan(config=CONFIG, per_second=1.0)):
        stop.clear()
        assert [t.number for t in run(plan, measure, stop)] == [1]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"every_s": 1.0, "per_second": 1.0},
        {"every_s": 0.01},
        {"per_second": 51},
        {"per_second": 0},
        {"every_s": 1.0, "count": 1001},
        {"every_s": 1.0, "count": 0},
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_sent(options):
    with pytest.raises(UsageError):
        WatchPlan(config=CONFIG, **options)


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ((("retry-after", "3"),), 3.0),
        ((("retry-after-ms", "250"),), 0.25),
        ((), 1.0),
        ((("retry-after", "soon"),), 1.0),
        ((("retry-after", "Thu, 01 Jan 1970 00:01:00 GMT"),), 20.0),
    ],
)
def test_every_spelling_of_retry_after(fields, seconds):
    row: Exchange = replace(exchange("wait 1"), response_headers=fields)
    assert asked_wait_s(row, 40.0) == seconds
