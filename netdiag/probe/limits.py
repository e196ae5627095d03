"""How long an operation may take: its own limit and the whole call's, whichever comes first."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import httpcore

from netdiag.probe.failures import FirstEventTimedOut, ReadTimedOut, TotalTimedOut, WriteTimedOut


@dataclass(frozen=True, slots=True)
class Deadline:
    """An instant on the monotonic clock (seconds), and whose limit it is."""

    at_s: float
    is_total: bool = False
    """The whole call's."""
    is_first: bool = False
    """That for the first event of the answer."""

    def left_s(self) -> float:
        """Seconds that remain, never below 0; infinite without a limit."""
        return max(0.0, self.at_s - time.monotonic())

    def read_failure(self) -> httpcore.ReadTimeout:
        """The exception for a read that this deadline ended."""
        if self.is_first:
            return FirstEventTimedOut("no first event in time")
        if self.is_total:
            return TotalTimedOut("the call's time limit is over")
        return ReadTimedOut("the server was silent for too long")

    def write_failure(self) -> Exception:
        """The exception for a write that this deadline ended."""
        return TotalTimedOut("the call's time limit is over") if self.is_total else WriteTimedOut("cannot send in time")


def deadline(timeout_s: float | None, total_at_s: float | None, first_at_s: float | None = None) -> Deadline:
    """The nearest of ``timeout_s`` from now, the call's own end, and the instant by which its answer must have begun."""
    at_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
    if total_at_s is not None and total_at_s <= min(at_s, math.inf if first_at_s is None else first_at_s):
        return Deadline(total_at_s, is_total=True)
    if first_at_s is not None and first_at_s <= at_s:
        return Deadline(first_at_s, is_first=True)
    return Deadline(at_s)
