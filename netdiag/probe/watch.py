"""A small trial again and again: at an interval, one after the other, or at a rate, whether the last has ended or not (open loop).

A trial that starts later than it was due is not a fast trial: the lag between schedule and start is kept beside every result, so that
nobody mistakes a stalled watcher for a healthy service (coordinated omission).
"""

from __future__ import annotations

import dataclasses
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from netdiag.errors import UsageError
from netdiag.probe.plan import MAX_CONCURRENCY, MAX_PER_SECOND, MAX_REQUESTS, ProbeConfig
from netdiag.protocols.retry_after import asked
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange
from netdiag.units import NS_PER_S

Measure = Callable[[ProbeConfig], Analysis]
_LONGEST_HOLD_S = 600.0
_REFUSED = frozenset({429, 503, 529})
_DEFAULT_HOLD_S = 1.0
"""After a refusal that names no time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPlan:
    """How often. Exactly one of ``every_s`` and ``per_second``. Raises ``UsageError`` on creation for what cannot be."""

    config: ProbeConfig
    """One trial of it is one tick."""
    every_s: float | None = None
    per_second: float | None = None
    count: int | None = None
    """Ticks; None until it is stopped, or the ceiling of requests is reached."""

    def __post_init__(self) -> None:
        if (self.every_s is None) == (self.per_second is None):
            raise UsageError("give an interval or a rate, one of them")
        if self.every_s is not None and self.every_s < 0.25:
            raise UsageError("the shortest interval is 0.25 s; --rate is for more")
        if self.per_second is not None and not 0 < self.per_second <= MAX_PER_SECOND:
            raise UsageError(f"a rate lies between 0 and {MAX_PER_SECOND} per second")
        if self.config.trials != 1:
            raise UsageError("a tick of a watch is one trial")
        if self.count is not None and not 1 <= self.count <= self.most_ticks:
            raise UsageError(
                f"{self.count} ticks: between 1 and {self.most_ticks} (no more than {MAX_REQUESTS} requests in one run)"
            )

    @property
    def interval_s(self) -> float:
        """Between two ticks."""
        return self.every_s if self.every_s is not None else 1 / (self.per_second or 1)

    @property
    def most_ticks(self) -> int:
        """What the ceiling of requests allows."""
        return max(1, MAX_REQUESTS // max(1, self.config.request_count()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One trial that was made, or was not because the server had asked for patience."""

    number: int
    """From 1."""
    scheduled_at: int
    """ns since the epoch."""
    lag_ns: int
    """How much later than scheduled it started."""
    analysis: Analysis | None
    """None for a tick that was skipped or failed as a whole."""
    skipped: str | None = None


def watch(plan: WatchPlan, measure: Measure, stop: threading.Event) -> Iterator[Tick]:
    """Ticks as they end, until ``stop`` is set or the plan's count is reached; trials in flight are waited for.

    At an interval they are made in the caller's thread, where a ^C reaches the one that hangs.
    """
    return _one_by_one(plan, measure, stop) if plan.every_s is not None else _open_loop(plan, measure, stop)


def _one_by_one(plan: WatchPlan, measure: Measure, stop: threading.Event) -> Iterator[Tick]:
    hold = _Hold()
    for slot in _slots(plan, stop):
        refused = hold.refuses(slot)
        if refused is None:
            slot.began()
        yield refused or _trial(plan, slot, measure, hold)


def _open_loop(plan: WatchPlan, measure: Measure, stop: threading.Event) -> Iterator[Tick]:
    done: queue.SimpleQueue[Tick] = queue.SimpleQueue()
    with ThreadPoolExecutor(MAX_CONCURRENCY, thread_name_prefix="watch") as pool:
        clerk = threading.Thread(
            target=_schedule, args=(plan, measure, stop, done, pool), name="watch-schedule", daemon=True
        )
        clerk.start()
        try:
            while (tick := _next(done, clerk, pool)) is not None:
                yield tick
        finally:  # also when the caller is interrupted: nothing may be submitted to a pool that is closing
            stop.set()
            clerk.join()


@dataclass(slots=True)
class _Slot:
    """One place in the schedule."""

    number: int
    due: int
    """Monotonic ns."""
    offset: int
    """From there to the epoch."""
    start_ns: int | None = None
    """When its trial began, if that moves the schedule."""

    @property
    def scheduled_at(self) -> int:
        return self.due + self.offset

    def began(self) -> None:
        """A trial that takes longer than the interval delays all after it: no burst makes up for it."""
        self.start_ns = time.monotonic_ns()


def _slots(plan: WatchPlan, stop: threading.Event) -> Iterator[_Slot]:
    """Each when it is due; none after ``stop``."""
    offset = time.time_ns() - time.monotonic_ns()
    step_ns = round(plan.interval_s * 1e9)
    due = time.monotonic_ns()
    for number in range(1, (plan.most_ticks if plan.count is None else plan.count) + 1):
        if stop.wait(max(0.0, (due - time.monotonic_ns()) / 1e9)):
            return
        slot = _Slot(number, due, offset)
        yield slot
        due = (slot.due if slot.start_ns is None else slot.start_ns) + step_ns


class _Hold:
    """Until when nothing is sent, because a server asked for it."""

    def __init__(self) -> None:
        self._until = 0.0
        self._lock = threading.Lock()

    def extend(self, seconds: float) -> None:
        with self._lock:
            self._until = max(self._until, time.monotonic() + min(seconds, _LONGEST_HOLD_S))

    def refuses(self, slot: _Slot) -> Tick | None:
        """The tick of a slot that falls into the pause; None where nothing speaks against a trial."""
        with self._lock:
            left = self._until - time.monotonic()
        if left <= 0:
            return None
        said = f"asked to wait {left:.1f} s more"
        return Tick(number=slot.number, scheduled_at=slot.scheduled_at, lag_ns=0, analysis=None, skipped=said)


def _schedule(
    plan: WatchPlan,
    measure: Measure,
    stop: threading.Event,
    done: queue.SimpleQueue[Tick],
    pool: ThreadPoolExecutor,
) -> None:
    hold = _Hold()

    def try_it(slot: _Slot) -> None:
        done.put(_trial(plan, slot, measure, hold))

    for slot in _slots(plan, stop):
        refused = hold.refuses(slot)
        if refused is not None:
            done.put(refused)
        else:
            pool.submit(try_it, slot)


def _trial(plan: WatchPlan, slot: _Slot, measure: Measure, hold: _Hold) -> Tick:
    lag_ns = time.monotonic_ns() - slot.due
    try:
        analysis = measure(plan.config)
    except Exception as error:
        return Tick(
            number=slot.number,
            scheduled_at=slot.scheduled_at,
            lag_ns=lag_ns,
            analysis=None,
            skipped=f"no trial: {error}",
        )
    rows = tuple(dataclasses.replace(row, trial=slot.number) for row in analysis.exchanges)
    for row in rows:
        if row.status in _REFUSED:
            hold.extend(asked_wait_s(row, time.time()))
    return Tick(
        number=slot.number,
        scheduled_at=slot.scheduled_at,
        lag_ns=lag_ns,
        analysis=dataclasses.replace(analysis, exchanges=rows),
    )


def _next(done: queue.SimpleQueue[Tick], clerk: threading.Thread, pool: ThreadPoolExecutor) -> Tick | None:
    """The next tick that ends; None when none will come any more."""
    while clerk.is_alive():
        try:
            return done.get(timeout=0.1)
        except queue.Empty:
            continue
    pool.shutdown(wait=True)
    try:
        return done.get_nowait()
    except queue.Empty:
        return None


def asked_wait_s(exchange: Exchange, now: float) -> float:
    """Seconds that a refusal asks for; a short while where it names no time."""
    wish = asked(dict(exchange.response_headers), wall_ns=round(now * NS_PER_S))
    return _DEFAULT_HOLD_S if wish is None else wish.ns / NS_PER_S
