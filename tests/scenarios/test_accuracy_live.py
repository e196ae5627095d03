"""How accurate netdiag is against the real server on loopback, with kernel stamps and no privilege: wait and transfer within 1 ms."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
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


def check_within(errors_of: Callable[[], list[int]]) -> None:
    """Hold the median error to 1 ms. A busy machine only adds lateness, so a run that is off is measured again, twice at most."""
    for _ in range(3):
        error = statistics.median(errors_of())
        if abs(error) < WITHIN_NS:
            return
    pytest.fail(f"median error {error} ns")


@pytest.mark.parametrize("arm", ["h1", "h2"])
@pytest.mark.parametrize("wait_ms", [0, 20, 80])
def test_wait_is_the_servers(start_lab: StartLab, arm: str, wait_ms: float) -> None:
    def errors() -> list[int]:
        measured = pairs(start_lab, Behaviour(wait_ms=wait_ms), "/v1/models", arm)
        return [phase_ns(found, "wait") - (true.wait_ns or 0) for true, found in measured]

    check_within(errors)


@pytest.mark.parametrize("arm", ["h1", "h2"])
def test_transfer_is_the_streams(start_lab: StartLab, arm: str) -> None:
    behaviour = Behaviour(wait_ms=10, events=5, gap_ms=20, stream=True)

    def errors() -> list[int]:
        out = []
        for true, found in pairs(start_lab, behaviour, "/v1/chat/completions", arm):
            assert true.response_last_at is not None
            assert true.headers_at is not None
            out.append(phase_ns(found, "transfer") - (true.response_last_at - true.headers_at))
        return out

    check_within(errors)


@pytest.mark.parametrize("arm", ["h1", "h2"])
def test_event_gaps_are_the_servers(start_lab: StartLab, arm: str) -> None:
    behaviour = Behaviour(wait_ms=10, events=6, gap_ms=15, stream=True)

    def errors() -> list[int]:
        out = []
        for true, found in pairs(start_lab, behaviour, "/v1/chat/completions", arm):
            assert found.stream is not None
            written = [e.written_at for e in true.events if e.kind == "text"]
            gaps = [b - a for a, b in pairwise(written)]
            out += [abs(x - y) for x, y in zip(found.stream.gaps_ns, gaps, strict=True)]
        return out

    check_within(errors)


@pytest.mark.parametrize("arm", ["h1", "h2"])
def test_time_before_the_servers_flight_is_tls(start_lab: StartLab, arm: str) -> None:
    """Dose and response: 60 ms before the ServerHello lengthen tls by 60 ms and no other phase."""

    def medians(tls_ms: float) -> dict[str, float]:
        server = start_lab(Behaviour(wait_ms=10), tls_ms=tls_ms)
        config = ProbeConfig(
            urls=(server.url + "/v1/models",), arms=(arm,), trials=4, cacert=server.ca_file, capture="none", seed=1
        )
        exchanges = api.probe(config).exchanges
        return {n: statistics.median(phase_ns(e, n) for e in exchanges) for n in ("tcp", "tls", "wait", "transfer")}

    for _ in range(3):
        without, injected = medians(0), medians(60)
        rises = {name: injected[name] - without[name] for name in without}
        expected = {"tcp": 0.0, "tls": 60e6, "wait": 0.0, "transfer": 0.0}
        right = all(abs(rises[name] - expected[name]) < 2 * WITHIN_NS for name in expected)
        if right:
            break
    assert right, f"rises in ns: {rises}"
