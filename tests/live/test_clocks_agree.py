"""The same requests at L1 and L2: kernel and wire tell the same of every stream, also of those that share a connection, where the
application's own clock does not."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import pytest

import netdiag
from netdiag.lab import Behaviour, LabServer
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange
from netdiag.records.source import EvidenceLevel
from tests.support.lab import StartLab
from tests.support.probing import NS_PER_MS, config_for

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("timing")]
STREAM = "/v1/chat/completions?stream=true&events=6&gap_ms=15"
SPLIT = ("send", "wait", "transfer")


def phase_ns(exchange: Exchange, clock: str, name: str) -> int:
    """Duration by one of the clocks that an exchange keeps beside each other."""
    assert exchange.clocks is not None
    return sum(p.duration_ns for p in exchange.clocks[clock].phases if p.name.value == name)


def counted(analysis: Analysis) -> Iterator[Exchange]:
    """Those that statistics count."""
    return (e for e in analysis.exchanges if e.trial)


@pytest.mark.parametrize("arm", ["h2+k6", "h1+k6", "h2+k6+separate", "h2+k6+warm"])
def test_concurrent_requests_are_split_alike_by_kernel_and_wire(
    start_lab: StartLab, fast_backend: str, arm: str
) -> None:
    """Bounds: median within 1 ms, nine in ten within 5 ms (a read is stamped with its last segment)."""
    server = start_lab(Behaviour(wait_ms=30))
    analysis = netdiag.probe(config_for(server, STREAM, arms=(arm,), trials=3, capture=fast_backend))
    assert analysis.source.evidence_level is EvidenceLevel.L3
    rows = list(counted(analysis))
    assert len(rows) == 18
    for name in SPLIT:
        apart = sorted(abs(phase_ns(e, "kernel", name) - phase_ns(e, "wire", name)) for e in rows)
        assert statistics.median(apart) < 1 * NS_PER_MS, (name, apart)
        assert apart[int(len(apart) * 0.9)] < 5 * NS_PER_MS, (name, apart)


@pytest.mark.parametrize("arm", ["h2+k6", "h1"])
def test_a_run_without_packets_finds_what_one_with_packets_finds(start_lab: StartLab, arm: str) -> None:
    """Two runs of the same scenario: medians of the server's wait and of the transfer within 4 ms on a busy machine."""
    server = start_lab(Behaviour(wait_ms=30))
    medians = {}
    for capture in ("none", "auto"):
        analysis = netdiag.probe(config_for(server, STREAM, arms=(arm,), trials=4, capture=capture))
        medians[capture] = {
            name: statistics.median(sum(p.duration_ns for p in e.phases if p.name == name) for e in counted(analysis))
            for name in ("wait", "transfer")
        }
        events = [e.stream.token_events for e in counted(analysis) if e.stream]
        assert set(events) == {6}
    for name in ("wait", "transfer"):
        assert abs(medians["none"][name] - medians["auto"][name]) < 4 * NS_PER_MS, medians


@pytest.mark.parametrize("capture", ["none", "auto"])
def test_waits_of_concurrent_streams_are_the_servers(start_lab: StartLab, capture: str) -> None:
    """Truth by the server's log, stream by stream."""
    server: LabServer = start_lab(Behaviour(wait_ms=40))
    analysis = netdiag.probe(config_for(server, STREAM, arms=("h2+k6",), trials=2, capture=capture))
    truth = {(row.client, row.stream_id): row.wait_ns for row in server.log.exchanges()}
    wrong = []
    for exchange in counted(analysis):
        assert exchange.connection_id is not None
        wait_ns = truth[str(analysis.connections[exchange.connection_id].client), exchange.stream_id]
        assert wait_ns is not None
        found = sum(p.duration_ns for p in exchange.phases if p.name == "wait")
        wrong.append(abs(found - wait_ns))
    assert statistics.median(wrong) < 3 * NS_PER_MS, wrong
