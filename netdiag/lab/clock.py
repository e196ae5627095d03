"""Being on time: an event loop whose timers do not round up to milliseconds, and a wait that ends on the microsecond."""

from __future__ import annotations

import asyncio
import ctypes
import select
import selectors
import sys
import time
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

SPIN_NS = 200_000
"""The last part of a wait is spun: a sleeping thread is woken up to this late on an idle machine."""
_PR_SET_TIMERSLACK = 29
_FD_SETSIZE = 1024
"""select() cannot watch descriptors from here on."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """One instant on both clocks: waits are counted on the monotonic one, truth is written on the wall clock."""

    wall_ns: int
    monotonic_ns: int

    @staticmethod
    def now() -> Stamp:
        """The present, by the loop's own clock where it has one."""
        loop = asyncio.get_running_loop()
        if isinstance(loop, OwnClock):
            return loop.stamp()
        return Stamp(time.time_ns(), time.monotonic_ns())

    @staticmethod
    def at_wall(wall_ns: int) -> Stamp:
        """A past instant known by the wall clock only (a kernel stamp). One that lies in the future (the clock was set back) counts as now."""
        now = Stamp.now()
        return Stamp(wall_ns, now.monotonic_ns - max(0, now.wall_ns - wall_ns))

    def after(self, delay_ns: int) -> Stamp:
        """This instant and ``delay_ns``."""
        return Stamp(self.wall_ns + delay_ns, self.monotonic_ns + delay_ns)


@runtime_checkable
class OwnClock(Protocol):
    """An event loop that makes its own time; its timers end exactly when they are due, so nothing needs to be spun."""

    def stamp(self) -> Stamp:
        """The present of that time."""


async def until(stamp: Stamp) -> None:
    """Return at the instant, not before it: sleep while it is far, then spin. Returns at once when it has passed."""
    remaining_ns = stamp.monotonic_ns - Stamp.now().monotonic_ns
    if isinstance(asyncio.get_running_loop(), OwnClock):
        if remaining_ns > 0:
            await asyncio.sleep(remaining_ns / 1e9)
        return
    if remaining_ns > SPIN_NS:
        await asyncio.sleep((remaining_ns - SPIN_NS) / 1e9)
    while time.monotonic_ns() < stamp.monotonic_ns:
        pass


def ns(milliseconds: float) -> int:
    """Configuration is written in milliseconds, everything inside is integer nanoseconds."""
    return round(milliseconds * 1_000_000)


def precise_event_loop() -> asyncio.AbstractEventLoop:
    """An event loop for the calling thread whose timers are good to tens of microseconds (Linux; elsewhere what the system offers)."""
    if sys.platform != "linux":
        return asyncio.SelectorEventLoop()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    return asyncio.SelectorEventLoop(_PreciseSelector())


if sys.platform == "linux":

    class _PreciseSelector(selectors.EpollSelector):
        """epoll counts in milliseconds and Python rounds up; select() on the epoll descriptor itself waits in microseconds."""

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            descriptor = self.fileno()
            if timeout is not None and timeout > 0 and descriptor < _FD_SETSIZE:
                select.select([descriptor], [], [], timeout)
                timeout = 0
            return super().select(timeout)
