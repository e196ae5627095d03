"""Times of a capture that go back."""

from __future__ import annotations

import numpy as np
import pytest

from netdiag.analysis.clock_steps import ClockSteps
from netdiag.wire.tables import NONE, RawPackets

MS = 1_000_000


def window(*at_ms: float | None, first: int = 1) -> RawPackets:
    at = np.array([NONE if ms is None else int(ms * MS) for ms in at_ms], np.int64)
    nothing = np.zeros(len(at), np.int64)
    return RawPackets(
        number=np.arange(first, first + len(at)),
        captured_at=at,
        data_offset=nothing,
        captured_bytes=nothing,
        original_bytes=nothing,
        interface=nothing.astype(np.int32),
    )


def told(*windows: RawPackets) -> list[tuple[int | None, str]]:
    steps = ClockSteps()
    for one in windows:
        steps.see(one)
    return [(a.packet, a.reason) for a in steps.anomalies()]


@pytest.mark.parametrize("windows", [(), (window(),), (window(5, 6, 6, 9),), (window(500, 401, 600),)])
def test_nothing_is_said_of_order_or_of_what_queues_do(windows: tuple[RawPackets, ...]) -> None:
    assert told(*windows) == []


def test_a_clock_that_was_set_back() -> None:
    assert told(window(10_000, 10_010, 5_020, 5_030)) == [
        (3, "times go back by 4.99 s: what lasted across that is not known")
    ]


def test_steps_between_windows_and_past_packets_without_a_time() -> None:
    found = told(window(None, 9_000, None), window(None, 1_000, 2_000, 1_500, first=4))
    assert found == [(5, "times go back, 2 times, at most by 8.00 s: what lasted across that is not known")]
