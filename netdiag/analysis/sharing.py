"""How work on windows and parts may be shared: the caller of the pipeline brings the threads, if any."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

Thing = TypeVar("Thing")
Result = TypeVar("Result")


class Runner(Protocol):
    """Applies a function to all things, perhaps to several at once; results in order. Things are taken by the calling thread, in order,
    and only a few ahead of the results."""

    def __call__(self, function: Callable[[Thing], Result], things: Iterable[Thing], /) -> Iterable[Result]:
        """Results in the order of ``things``."""
        ...


def one_by_one(function: Callable[[Thing], Result], things: Iterable[Thing], /) -> Iterable[Result]:
    """Not shared."""
    return map(function, things)
