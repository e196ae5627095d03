"""The application's clock: monotonic, told in nanoseconds since the epoch.

One offset is taken at the start, so durations never jump when the wall clock is set; the kernel's stamps stay on the wall clock, and
``step_ns`` says how far the two have come apart since.
"""

from __future__ import annotations

import time

_SAMPLES = 5


class ProbeClock:
    """Monotonic instants shifted to the epoch by the offset at creation."""

    __slots__ = ("offset_ns",)

    def __init__(self) -> None:
        self.offset_ns = _wall_minus_monotonic_ns()

    def now(self) -> int:
        """ns since the epoch; never goes back."""
        return time.monotonic_ns() + self.offset_ns

    def step_ns(self) -> int:
        """Wall clock against monotonic clock since creation: a step or slew. A few hundred ns are the measurement's own noise."""
        return _wall_minus_monotonic_ns() - self.offset_ns


def _wall_minus_monotonic_ns() -> int:
    """The sample with the narrowest pair of monotonic readings around it was disturbed least."""
    return min(_sample() for _ in range(_SAMPLES))[1]


def _sample() -> tuple[int, int]:
    before = time.monotonic_ns()
    wall = time.time_ns()
    after = time.monotonic_ns()
    return after - before, wall - (before + after) // 2
