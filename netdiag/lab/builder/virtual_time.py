"""An event loop whose clock jumps to the next timer instead of waiting for it: asyncio code runs in simulated time, exact to the nanosecond."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from netdiag.lab.clock import Stamp

T = TypeVar("T")


class Stuck(RuntimeError):
    """Every task waits for another: the scenario cannot end."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Starts at ``epoch_ns`` on the wall clock. Timers at one instant run in no promised order: what needs an order keeps its own queue."""

    def __init__(self, epoch_ns: int) -> None:
        """``epoch_ns``: wall-clock time at virtual time 0."""
        self._epoch_ns = epoch_ns
        self._now_ns = 0
        super().__init__(_JumpingSelector(self._jump))

    def time(self) -> float:
        """Virtual seconds since the start; what asyncio's timers count in."""
        return self._now_ns / 1e9

    def stamp(self) -> Stamp:
        """The virtual present, on both clocks."""
        return Stamp(self._epoch_ns + self._now_ns, self._now_ns)

    def at(self, wall_ns: int, call: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        """Run a callback at an instant (now, if that has passed)."""
        return self.call_at((wall_ns - self._epoch_ns) / 1e9, call, *args)

    def _jump(self, seconds: float) -> None:
        self._now_ns += max(1, round(seconds * 1e9))


class _JumpingSelector(selectors.SelectSelector):
    """Nothing ever comes from outside, so waiting is skipping."""

    def __init__(self, jump: Callable[[float], None]) -> None:
        super().__init__()
        self._jump = jump

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stuck("every task of the scenario waits for another")
        if timeout > 0:
            self._jump(timeout)
        return []


def now_ns() -> int:
    """The virtual wall clock of the running loop."""
    return Stamp.now().wall_ns


def run_virtual(main: Callable[[], Coroutine[Any, Any, T]], *, epoch_ns: int) -> T:
    """Run a coroutine to its end in virtual time. Raises Stuck when it never would. Inside another running loop (a notebook has one) it
    has a thread of its own."""
    if asyncio._get_running_loop() is None:
        return _run(main, epoch_ns)
    with ThreadPoolExecutor(1, thread_name_prefix="netdiag-lab") as pool:
        return pool.submit(_run, main, epoch_ns).result()


def _run(main: Callable[[], Coroutine[Any, Any, T]], epoch_ns: int) -> T:
    loop = VirtualLoop(epoch_ns)
    try:
        return loop.run_until_complete(main())
    finally:
        _cancel_all(loop)
        loop.close()


def _cancel_all(loop: VirtualLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
