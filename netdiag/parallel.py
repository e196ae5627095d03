"""The same function on many things, by several threads.

The passes over columns are numpy's, which lets other threads run meanwhile, so that threads gain what processes would, and nothing has to be
sent anywhere.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

Thing = TypeVar("Thing")
Result = TypeVar("Result")

MOST_JOBS = 4
"""By default: what memory they need grows with them, and what one thread alone must do does not shrink."""
SWITCH_SECONDS = 0.0005
"""A thread that comes back from numpy waits so long at most for another one that is busy in Python. The default, ten times that, is as long as
a whole pass."""


def default_jobs() -> int:
    """As many threads as there are processors for this process, within reason."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MOST_JOBS, available)


def map_threaded(function: Callable[[Thing], Result], things: Iterable[Thing], jobs: int) -> Iterator[Result]:
    """Results in order. Things are taken by the calling thread, only as many ahead of the results as there are threads.

    What ``function`` raises is raised here; then, and when the caller stops early, what has not begun is not done.
    """
    if jobs < 2:
        yield from map(function, things)
        return
    coming = iter(things)
    ahead = list(islice(coming, 2))
    if len(ahead) < 2:  # threads are not worth loading
        yield from map(function, ahead)
        return
    from concurrent.futures import ThreadPoolExecutor

    waiting: deque[Future[Result]] = deque()
    with _frequent_switches(), ThreadPoolExecutor(jobs, "netdiag") as threads:
        try:
            for thing in chain(ahead, coming):
                waiting.append(threads.submit(function, thing))
                if len(waiting) > jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


@contextmanager
def _frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH_SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(before)
