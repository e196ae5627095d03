"""How long an operation may take: its own limit and the whole call's, whichever comes first."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import httpcore

from netdiag.probe.failures import ReadTimedOut, TotalTimedOut, WriteTimedOut


@dataclass(frozen=True, slots=True)
class Deadline:
    """An instant on the monotonic clock (seconds), and whether it is the whole call's."""

    at_s: float
    is_total: bool = False

    def left_s(self) -> float:
        """Seconds that remain, never below 0; infinite without a limit."""
        return max(0.0, self.at_s - time.monotonic())

    def read_failure(self) -> httpcore.ReadTimeout:
        """The exception for a read that this deadline ended."""
        return TotalTimedOut("the call's time limit is over") if self.is_total else ReadTimedOut("no answer in time")

    def write_failure(self) -> Exception:
        """The exception for a write that this deadline ended."""
        return TotalTimedOut("the call's time limit is over") if self.is_total else WriteTimedOut("cannot send in time")


def deadline(timeout_s: float | None, total_at_s: float | None) -> Deadline:
    """The nearer of ``timeout_s`` from now and the call's own end."""
    at_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
    if total_at_s is not None and total_at_s <= at_s:
        return Deadline(total_at_s, is_total=True)
    return Deadline(at_s)
