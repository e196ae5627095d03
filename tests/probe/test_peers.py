"""Real servers: nginx and caddy speak both protocols, nghttpd only HTTP/2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import netdiag
from netdiag.capture.privileges import ability
from netdiag.probe.plan import ProbeConfig
from netdiag.probe.run import run
from netdiag.records.exchange import Outcome
from netdiag.records.timing import PhaseName
from tests.support.peers import BODY_BYTES, Peer, running_peer

pytestmark = pytest.mark.peers


@pytest.fixture(params=["nginx", "caddy", "nghttpd"])
def peer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Peer]:
    """Each of them."""
    with running_peer(request.param, tmp_path) as running:
        yield running


def config_for(peer: Peer, **options: object) -> ProbeConfig:
    """Two counted trials per arm."""
    return ProbeConfig(urls=(peer.url + "/index.html",), cacert=peer.ca_file, trials=2, seed=1, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("warm", [False, True])
def test_arms_and_bodies(peer: Peer, warm: bool) -> None:
    recording = run(config_for(peer, warm=warm))
    expected = {"h2"} if peer.name == "nghttpd" else {"h1", "h2"}
    assert {r.arm for r in recording.requests} == expected
    assert {u.arm for u in recording.unsupported} == {"h1", "h2"} - expected
    for request in recording.requests:
        assert request.outcome is Outcome.OK, request.error
        assert request.response_bytes == BODY_BYTES
        assert request.reused == (warm and request.trial > 0)
        assert request.protocol == ("h2" if request.arm == "h2" else "http/1.1")


@pytest.mark.parametrize("capture", ["none", "auto"])
def test_phases(peer: Peer, capture: str) -> None:
    if capture == "auto" and not ability().allowed:
        pytest.skip(f"no capture here: {ability().note}")
    analysis = netdiag.probe(config_for(peer, capture=capture))
    assert str(analysis.source.evidence_level) == ("L3" if capture == "auto" else "L1")
    ours = [e for e in analysis.exchanges if e.arm is not None]
    assert len(ours) == (3 if peer.name == "nghttpd" else 6)
    for exchange in ours:
        names = [phase.name for phase in exchange.phases]
        for wanted in (PhaseName.TCP, PhaseName.TLS, PhaseName.SEND, PhaseName.WAIT, PhaseName.TRANSFER):
            assert names.count(wanted) == 1, (exchange.arm, names)
        assert sum(p.duration_ns for p in exchange.phases) + exchange.unattributed_ns == exchange.total_ns
        assert exchange.status == 200
        assert exchange.outcome is Outcome.OK
