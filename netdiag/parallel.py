"""The same function on many things, in several processes. Only where processes can be forked: the things need not be sent anywhere."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

Thing = TypeVar("Thing")
Result = TypeVar("Result")


def map_forked(function: Callable[[Thing], Result], things: Sequence[Thing], jobs: int) -> list[Result | None]:
    """Results in order. The first share of the things is done here, each other one in a child process.

    None stands for what this process has to do itself: its child could not be started, or failed (then the failure is met again here, where
    it can be told). Children end with their work; results must be picklable.
    """
    shares = _shares(len(things), jobs)
    children = [_start(function, things[share.start : share.stop]) for share in shares[1:]]
    results: list[Result | None] = [function(thing) for thing in things[shares[0].start : shares[0].stop]]
    for share, child in zip(shares[1:], children, strict=True):
        results += _collect(child) or [None] * len(share)
    return results


def can_fork() -> bool:
    """Whether this system has ``fork``."""
    return hasattr(os, "fork")


def _shares(count: int, jobs: int) -> list[range]:
    jobs = max(1, min(jobs, count)) if can_fork() else 1
    edges = [count * i // jobs for i in range(jobs + 1)]
    return [range(a, b) for a, b in pairwise(edges)]


_Child = tuple[int, int]
"""Process id, and the end of the pipe to read its results from."""


def _start(function: Callable[[Thing], Result], things: Sequence[Thing]) -> _Child | None:
    reading, writing = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        return None
    if child == 0:
        os.close(reading)
        _work(function, things, writing)
    os.close(writing)
    return child, reading


def _work(function: Callable[[Thing], Result], things: Sequence[Thing], writing: int) -> None:
    """In the child, which never returns: nothing of the parent's may be cleaned up, flushed or reported twice."""
    try:
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump([function(thing) for thing in things], pipe, protocol=5)
        os._exit(0)
    finally:
        os._exit(1)


def _collect(child: _Child | None) -> list[Result] | None:
    if child is None:
        return None
    process, reading = child
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(process, 0)
    return pickle.loads(data) if status == 0 else None  # noqa: S301  our own child wrote it
