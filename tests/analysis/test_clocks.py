"""Two clocks that differ, or one that was set during the run: said, and laid on each other; and nothing is said where they agree."""

from __future__ import annotations

import dataclasses

import pytest

from netdiag.analysis.clocks import OffsetBounds, align, bounds
from netdiag.analysis.join import without_packets
from netdiag.lab import Behaviour, LabConfig, LabServer
from netdiag.probe import kernel
from netdiag.records.recording import ClientConnection, Recording, SocketOperation
from netdiag.units import NS_PER_MS
from tests.support.fabricated import source
from tests.support.probing import probe_lab

pytestmark = pytest.mark.skipif(not kernel.available(), reason="the kernel stamps nothing here")


@pytest.fixture(scope="module")
def recording() -> Recording:
    """Four warm HTTP/1.1 requests and two cold HTTP/2 ones."""
    with LabServer(LabConfig(behaviour=Behaviour(wait_ms=15, body_bytes=2_000))) as server:
        return probe_lab(server, arms=("h1+warm", "h2"), trials=2)


def shifted(connection: ClientConnection, by_ms: float, *, from_at: int = 0) -> ClientConnection:
    """As if the wall clock, on which the kernel stamps, had been set by so much at that instant."""
    by_ns = round(by_ms * NS_PER_MS)
    operations = tuple(
        dataclasses.replace(o, kernel_at=o.kernel_at + by_ns) if o.kernel_at and o.application_at >= from_at else o
        for o in connection.operations
    )
    return dataclasses.replace(connection, operations=operations)


def durations(recording: Recording) -> list[dict[str, int]]:
    """Every phase of every request."""
    rows = without_packets(recording, source()).exchanges
    return [{p.name.value: p.duration_ns for p in e.phases} for e in rows]


def test_clocks_that_agree_are_left_alone(recording: Recording) -> None:
    same, anomalies = align(recording)
    assert same is recording
    assert anomalies == ()
    for connection in recording.connections:
        found = bounds(connection.operations)
        assert found.lo is not None
        assert found.hi is not None
        assert found.lo <= 50_000  # a read never returns before its octets came …
        assert found.hi >= -50_000  # … and nothing leaves before it is written
        assert found.least == 0


@pytest.mark.parametrize("by_ms", [300.0, -300.0, 5_000.0])
def test_a_clock_that_is_ahead_or_behind_changes_no_phase(recording: Recording, by_ms: float) -> None:
    other = dataclasses.replace(recording, connections=tuple(shifted(c, by_ms) for c in recording.connections))
    analysis = without_packets(other, source())
    assert [a.protocol for a in analysis.anomalies] == ["clock"]
    assert f"{len(recording.requests)} of {len(recording.requests)} requests" in analysis.anomalies[0].reason
    for straight, moved in zip(durations(recording), durations(other), strict=True):
        assert set(straight) - {"queue", "deliver"} <= set(moved)
        for name, duration_ns in moved.items():
            assert abs(duration_ns - straight.get(name, 0)) < 30 * NS_PER_MS, (name, duration_ns)
            if name in ("send", "wait", "transfer"):
                assert duration_ns == straight[name]


def test_a_clock_set_between_two_requests_of_one_connection(recording: Recording) -> None:
    warm = [r for r in recording.requests if r.arm == "h1+warm"]
    (number,) = {r.connection_id for r in warm}
    assert number is not None
    set_at = warm[-1].submitted_at
    connections = list(recording.connections)
    connections[number] = shifted(connections[number], -400, from_at=set_at)
    aligned, anomalies = align(dataclasses.replace(recording, connections=tuple(connections)))
    assert any("was set while connection" in a.reason for a in anomalies)
    moved = {r.id for r, old in zip(aligned.requests, recording.requests, strict=True) if r != old}
    assert moved == {warm[-1].id}


def test_a_step_that_the_two_clocks_of_the_process_saw_is_an_anomaly(recording: Recording) -> None:
    _, anomalies = align(dataclasses.replace(recording, clock_step_ns=-2_500_000))
    assert [a.reason for a in anomalies] == [
        "the wall clock moved by -2.5 ms against the monotonic clock during the run"
    ]
    assert align(dataclasses.replace(recording, clock_step_ns=400_000))[1] == ()


def test_bounds() -> None:
    def operation(direction: int, application_ms: float, kernel_ms: float | None) -> SocketOperation:
        at, stamp = round(application_ms * NS_PER_MS), None if kernel_ms is None else round(kernel_ms * NS_PER_MS)
        return SocketOperation(direction=direction, data=b"x", application_at=at, kernel_at=stamp)

    assert bounds([]) == OffsetBounds(None, None)
    assert bounds([operation(0, 1, None)]) == OffsetBounds(None, None)
    ahead = bounds([operation(0, 0, 10.2), operation(1, 30, 39.7)])
    assert (ahead.least, ahead.consistent) == (round(9.7 * NS_PER_MS), True)
    behind = bounds([operation(0, 20, 10), operation(1, 30, 15)])
    assert behind.least == -10 * NS_PER_MS
    assert not bounds([operation(0, 0, 0.1), operation(1, 30, 39)]).consistent


def test_what_the_kernel_says_of_the_connection_is_in_the_result(recording: Recording) -> None:
    for connection in without_packets(recording, source()).connections:
        assert connection.kernel is not None
        assert connection.kernel.min_rtt_ns is not None
        assert connection.kernel.total_retransmissions is not None
