"""Proxies on the wire and by the client: CONNECT in clear and inside TLS, SOCKS, and the environment's that was left aside."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import netdiag
from netdiag.api import run_command
from netdiag.lab import Behaviour, LabProxy, ProxyConfig
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange, Outcome
from netdiag.records.source import EvidenceLevel
from netdiag.records.timing import Clock
from tests.support.lab import StartLab
from tests.support.probing import NS_PER_MS, config_for
from tests.support.proxies import Socks5, TlsFront

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("timing")]
CONNECT_MS = 60


def phases(exchange: Exchange) -> dict[str, int]:
    """Durations by name."""
    return {p.name.value: p.duration_ns for p in exchange.phases}


def has_a_proxy_phase(exchange: Exchange) -> None:
    """The time the proxy took is its own; the server's is the server's; the handshake with the target comes after."""
    found = phases(exchange)
    names = list(found)
    assert names.index("tcp") < names.index("proxy") < names.index("tls") < names.index("wait")
    assert CONNECT_MS * NS_PER_MS - 1 * NS_PER_MS < found["proxy"] < (CONNECT_MS + 250) * NS_PER_MS, found
    assert 24 * NS_PER_MS < found["wait"] < 250 * NS_PER_MS, found
    assert sum(found.values()) + exchange.unattributed_ns == exchange.total_ns


@pytest.mark.parametrize("capture", ["none", "auto"])
@pytest.mark.parametrize("arm", ["h1", "h2"])
def test_connect_has_its_own_phase_at_every_level(start_lab: StartLab, arm: str, capture: str) -> None:
    server = start_lab(Behaviour(wait_ms=25))
    with LabProxy(ProxyConfig(connect_ms=CONNECT_MS)) as proxy:
        analysis = netdiag.probe(
            config_for(server, arms=(arm,), proxy=f"http://localhost:{proxy.port}", capture=capture)
        )
        port = proxy.port
    (exchange,) = analysis.exchanges
    assert exchange.outcome is Outcome.OK, exchange.outcome_detail
    has_a_proxy_phase(exchange)
    assert exchange.connection_id is not None
    connection = analysis.connections[exchange.connection_id]
    assert connection.proxied == "connect"
    assert connection.server.port == port
    if capture == "auto" and analysis.source.evidence_level is not EvidenceLevel.L1:
        assert {p.clock for p in exchange.phases if p.name in ("proxy", "tls", "wait")} == {Clock.WIRE}


def test_the_direct_arm_beside_it_has_none(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(wait_ms=25))
    with LabProxy(ProxyConfig(connect_ms=CONNECT_MS)) as proxy:
        analysis = netdiag.probe(
            config_for(server, arms=("h1", "h1+direct"), trials=7, proxy=f"http://localhost:{proxy.port}")
        )
    by_arm = {e.arm: phases(e) for e in analysis.exchanges}
    assert "proxy" in by_arm["h1"]
    assert "proxy" not in by_arm["h1+direct"]
    total = next(c for c in analysis.comparisons if c.quantity == "total")
    assert (total.arm_a, total.arm_b) == ("h1", "h1+direct")
    assert total.estimate_ns is not None
    assert total.estimate_ns < -CONNECT_MS / 2 * NS_PER_MS
    assert total.verdict == "faster"


def test_the_kept_capture_tells_it_alone(start_lab: StartLab, fast_backend: str, tmp_path: Path) -> None:
    """From packets only, with keys and without."""
    server, path, keys = start_lab(Behaviour(wait_ms=25)), tmp_path / "p.pcapng", tmp_path / "keys"
    with LabProxy(ProxyConfig(connect_ms=CONNECT_MS)) as proxy:
        netdiag.probe(
            config_for(
                server,
                arms=("h1",),
                proxy=f"http://localhost:{proxy.port}",
                capture=fast_backend,
                save_capture=str(path),
                keep_keys=str(keys),
            )
        )
    opened, closed = netdiag.analyze(path, keylog=keys), netdiag.analyze(path)
    for analysis in (opened, closed):
        through = {
            c.id for c in analysis.connections if c.proxied == "connect"
        }  # and not the proxy's own leg to the server
        asked = [e for e in analysis.exchanges if e.method != "CONNECT" and e.connection_id in through]
        assert len(asked) == 1
        if analysis is opened:
            has_a_proxy_phase(asked[0])
        else:  # without keys, tickets that come after the request on a busy machine may be taken for the answer
            assert phases(asked[0])["proxy"] > (CONNECT_MS - 1) * NS_PER_MS


def test_an_https_proxy(start_lab: StartLab, tmp_path: Path) -> None:
    """TLS to the proxy, CONNECT inside it, TLS to the target inside that."""
    server = start_lab(Behaviour(wait_ms=25))
    trusted = tmp_path / "both.pem"
    with LabProxy(ProxyConfig(connect_ms=CONNECT_MS)) as proxy, TlsFront(proxy.port, tmp_path) as front:
        trusted.write_bytes(Path(server.ca_file).read_bytes() + front.ca_pem)
        config = config_for(server, arms=("h1", "h2"), proxy=f"https://localhost:{front.port}", cacert=str(trusted))
        analysis = netdiag.probe(config)
    assert [e.outcome for e in analysis.exchanges] == [Outcome.OK] * 2, [e.outcome_detail for e in analysis.exchanges]
    for exchange in analysis.exchanges:
        has_a_proxy_phase(exchange)


def test_a_proxy_that_wants_a_password(start_lab: StartLab) -> None:
    server = start_lab()
    with LabProxy(ProxyConfig(refuse_with=407)) as proxy:
        analysis = netdiag.probe(
            config_for(server, arms=("h1",), proxy=f"http://localhost:{proxy.port}", capture="auto")
        )
    (exchange,) = analysis.exchanges
    assert exchange.outcome is Outcome.UNREACHABLE
    assert "407" in (exchange.outcome_detail or "")


@pytest.mark.peers
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_socks_is_recognised(start_lab: StartLab, fast_backend: str) -> None:
    server = start_lab(Behaviour(wait_ms=25))
    with Socks5(delay_s=CONNECT_MS / 1e3) as socks:
        command = ["curl", "-s", "-o", os.devnull, "--cacert", server.ca_file]
        command += ["--socks5-hostname", f"127.0.0.1:{socks.port}", server.url + "/v1/models"]
        run = run_command(command, capture=fast_backend)
    assert run.exit_code == 0
    (connection,) = [c for c in run.analysis.connections if c.server.port == socks.port]
    assert connection.proxied == "socks5"
    asked = [e for e in run.analysis.exchanges if e.method == "GET"]
    assert len(asked) == 1
    has_a_proxy_phase(asked[0])


def named(analysis: Analysis) -> str:
    """The one line about the run."""
    return analysis.source.note or ""


def test_a_proxy_of_the_environment_is_named_and_not_used(start_lab: StartLab, monkeypatch: pytest.MonkeyPatch) -> None:
    server = start_lab()
    monkeypatch.setenv("HTTPS_PROXY", "http://user:secret@proxy.invalid:3128")
    analysis = netdiag.probe(config_for(server, arms=("h1",)))
    assert analysis.exchanges[0].outcome is Outcome.OK
    assert "HTTPS_PROXY was not used" in named(analysis)
    assert "secret" not in repr(analysis)
    monkeypatch.delenv("HTTPS_PROXY")
    assert "PROXY" not in named(netdiag.probe(config_for(server, arms=("h1",))))
