"""How accurate netdiag is against the real server on loopback, with kernel stamps and no privilege: wait and transfer within 1 ms."""

from __future__ import annotations

import statistics
import sys
from itertools import pairwise

import pytest

from netdiag import api
from netdiag.lab import Behaviour
from netdiag.lab.truth import ServedExchange
from netdiag.probe.plan import ProbeConfig
from netdiag.records.exchange import Exchange
from tests.support.lab import StartLab

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernel stamps are Linux only: nothing to hold to 1 ms")
WITHIN_NS = 1_000_000


def pairs(start_lab: StartLab, behaviour: Behaviour, path: str, arm: str) -> list[tuple[ServedExchange, Exchange]]:
    """Five calls of one arm: what the server did beside what the probe says."""
    server = start_lab(behaviour)
    config = ProbeConfig(
        urls=(server.url + path,), arms=(arm,), trials=4, cacert=server.ca_file, capture="none", seed=1
    )
    analysis = api.probe(config)
    served = {e.client: e for e in server.log.settle().exchanges()}
    out = []
    for exchange in analysis.exchanges:
        assert exchange.connection_id is not None
        out.append((served[str(analysis.connections[exchange.connection_id].client)], exchange))
    assert len(out) == 5
    return out


def phase_ns(exchange: Exchange, name: str) -> int:
    return sum(p.duration_ns for p in exchange.phases if p.name == name)


@pytest.mark.parametrize("arm", ["h1", "h2"])
@pytest.mark.parametrize("wait_ms", [0, 20, 80])
def test_wait_is_the_servers(start_lab: StartLab, arm: str, wait_ms: float) -> None:
    errors = [
        phase_ns(found, "wait") - (true.wait_ns or 0)
        for true, found in pairs(start_lab, Behaviour(wait_ms=wait_ms), "/v1/models", arm)
    ]
    assert abs(statistics.median(errors)) < WITHIN_NS


@pytest.mark.parametrize("arm", ["h1", "h2"])
def test_transfer_is_the_streams(start_lab: StartLab, arm: str) -> None:
    behaviour = Behaviour(wait_ms=10, events=5, gap_ms=20, stream=True)
    errors = []
    for true, found in pairs(start_lab, behaviour, "/v1/chat/completions", arm):
        assert true.response_last_at is not None
        assert true.headers_at is not None
        errors.append(phase_ns(found, "transfer") - (true.response_last_at - true.headers_at))
    assert abs(statistics.median(errors)) < WITHIN_NS


@pytest.mark.parametrize("arm", ["h1", "h2"])
def test_event_gaps_are_the_servers(start_lab: StartLab, arm: str) -> None:
    behaviour = Behaviour(wait_ms=10, events=6, gap_ms=15, stream=True)
    errors = []
    for true, found in pairs(start_lab, behaviour, "/v1/chat/completions", arm):
        assert found.stream is not None
        written = [e.written_at for e in true.events if e.kind == "text"]
        gaps = [b - a for a, b in pairwise(written)]
        errors += [abs(x - y) for x, y in zip(found.stream.gaps_ns, gaps, strict=True)]
    assert statistics.median(errors) < WITHIN_NS
