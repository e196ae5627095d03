"""curl's own stopwatch against the wire, phase by phase, for real servers; and the same capture without keys."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import netdiag
from netdiag.capture.choose import live_capture
from netdiag.records.exchange import Exchange
from netdiag.records.timing import Method, Phase, PhaseName
from netdiag.units import NS_PER_MS
from tests.live.conftest import skip_unless_allowed
from tests.support.peers import Peer, running_peer

pytestmark = [
    pytest.mark.peers,
    pytest.mark.live,
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed: no independent stopwatch"),
]

NOISE_MS = 15.0
"""From the wire to curl's stamp after the system call, on a machine that does other things too."""


def agrees(wire_ms: float, curl_ms: float) -> None:
    """curl stamps after the wire does, never before."""
    assert wire_ms - 0.5 <= curl_ms <= wire_ms + NOISE_MS


@pytest.fixture(params=["nginx", "caddy"])
def peer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Peer]:
    with running_peer(request.param, tmp_path) as running:
        yield running


def fetched(peer: Peer, folder: Path, *options: str) -> tuple[Path, Path, list[dict[str, float]]]:
    """(capture, key log, curl's times of each transfer) of two requests on one connection."""
    skip_unless_allowed("dumpcap")
    capture, keys = folder / "curl.pcapng", folder / "keys.txt"
    port = urlsplit(peer.url).port or 443
    url = f"{peer.url}/index.html"
    command = ["curl", "-sS", "--cacert", peer.ca_file, *options, "-w", "%{stderr}%{json}\n", "-o", "/dev/null", url]
    command += ["-o", "/dev/null", url]
    with live_capture(name="dumpcap", path=str(capture), ports={port}, hosts=("127.0.0.1",)) as recorder:
        env = {"SSLKEYLOGFILE": str(keys), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30, env=env)
        recorder.finish(linger_s=0.3)
    return capture, keys, [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]


def of_the_server(capture: Path, keylog: Path | None, peer: Peer) -> list[Exchange]:
    analysis = netdiag.analyze(capture, keylog=keylog)
    port = urlsplit(peer.url).port
    ours = {c.id for c in analysis.connections if c.server.port == port and c.sides.client.payload_bytes}
    return [e for e in analysis.exchanges if e.connection_id in ours]


def ms(exchange: Exchange, name: PhaseName) -> float:
    return sum(p.duration_ns for p in exchange.phases if p.name is name) / NS_PER_MS


def phase(exchange: Exchange, name: PhaseName) -> Phase:
    return next(p for p in exchange.phases if p.name is name)


@pytest.mark.parametrize("options", [("--http1.1",), ("--http1.1", "--tls-max", "1.2"), ("--http2",)])
def test_each_phase_is_curls_within_noise(peer: Peer, tmp_path: Path, options: tuple[str, ...]) -> None:
    capture, keys, times = fetched(peer, tmp_path, *options)
    first, second = of_the_server(capture, keys, peer)
    assert (first.status, second.status, second.reused) == (200, 200, True)
    cold = {k: v * 1e3 for k, v in times[0].items() if k.startswith("time_")}
    tcp, tls = phase(first, PhaseName.TCP), phase(first, PhaseName.TLS)
    agrees(ms(first, PhaseName.TCP), cold["time_connect"] - cold["time_namelookup"])
    # curl's TLS time begins when TCP is connected: it loads the root certificates before the ClientHello.
    agrees((tls.ended_at - tcp.started_at) / NS_PER_MS, cold["time_appconnect"] - cold["time_namelookup"])
    # time_pretransfer is stamped some time after the request was written; on HTTP/2 time_starttransfer counts the server's SETTINGS.
    if "--http2" not in options:
        waited_ms = cold["time_starttransfer"] - cold["time_pretransfer"]
        assert ms(first, PhaseName.WAIT) == pytest.approx(waited_ms, abs=NOISE_MS)
        # Over HTTP/2 curl is done with the last octet that Content-Length announces, before END_STREAM.
        assert first.total_ns / NS_PER_MS <= cold["time_total"] + 0.5
    assert ms(second, PhaseName.TCP) == ms(second, PhaseName.TLS) == 0
    for exchange in (first, second):
        assert sum(p.duration_ns for p in exchange.phases) + exchange.unattributed_ns == exchange.total_ns


@pytest.mark.parametrize("options", [("--http1.1",), ("--http1.1", "--tls-max", "1.2"), ("--http2",)])
def test_without_keys_the_same_requests_are_found(peer: Peer, tmp_path: Path, options: tuple[str, ...]) -> None:
    for attempt in range(
        3
    ):  # a busy machine lets tickets and SETTINGS come late: once in a while a wait is then told wrong
        folder = tmp_path / str(attempt)
        folder.mkdir()
        capture, keys, _ = fetched(peer, folder, *options)
        opened, told = of_the_server(capture, keys, peer), of_the_server(capture, None, peer)
        assert len(told) == len(opened) == 2
        assert [exchange.method for exchange in told] == [None, None]
        waits = {p.method for exchange in told for p in exchange.phases if p.name is PhaseName.WAIT}
        assert waits <= {Method.GRAMMAR, Method.BOUNDED}
        if all(agree(*pair) for pair in zip(opened, told, strict=True)):
            return
    pytest.fail("no capture of three is told alike with and without keys")


def agree(with_keys: Exchange, without: Exchange) -> bool:
    """Within 2 ms in every phase that both tell."""
    names = (PhaseName.TCP, PhaseName.TLS, PhaseName.WAIT)
    return all(abs(ms(without, name) - ms(with_keys, name)) <= 2.0 for name in names)
