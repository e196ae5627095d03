"""What measuring costs: the probe and curl in turn on the same server, medians per phase. Prints; asserts nothing about time."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator

import pytest

import netdiag

pytestmark = [pytest.mark.benchmark, pytest.mark.peers]
ROUNDS = 20
_SERVER = """
import sys
from netdiag.lab import Behaviour, LabConfig, LabServer
with LabServer(LabConfig(behaviour=Behaviour(wait_ms=30, body_bytes=20_000, body_ms=20, body_pieces=5))) as server:
    print(server.url, server.ca_file, flush=True)
    sys.stdin.read()
"""
_PHASES = ("tcp", "tls", "wait", "transfer")


@pytest.fixture
def server() -> Iterator[tuple[str, str]]:
    """URL and root certificate of a lab in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    url, ca_file = process.stdout.readline().split()
    yield url + "/v1/models", ca_file
    process.communicate()


def by_curl(url: str, ca_file: str, flag: str) -> dict[str, float]:
    """curl's phases in milliseconds."""
    form = " ".join(
        f"%{{time_{n}}}" for n in ("namelookup", "connect", "appconnect", "pretransfer", "starttransfer", "total")
    )
    command = ["curl", "-s", "-o", os.devnull, flag, "--cacert", ca_file, "-w", form, url]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
    lookup, connect, app, ready, first, total = (float(word) * 1e3 for word in done.stdout.split())
    return {"tcp": connect - lookup, "tls": app - connect, "wait": first - ready, "transfer": total - first}


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("capture", ["auto", "none"])
def test_medians(server: tuple[str, str], capture: str, capsys: pytest.CaptureFixture[str]) -> None:
    url, ca_file = server
    seen: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _ in range(ROUNDS):
        for arm, flag in (("h1", "--http1.1"), ("h2", "--http2")):
            for name, value in by_curl(url, ca_file, flag).items():
                seen[f"curl {arm}", name].append(value)
        analysis = netdiag.probe(url, cacert=ca_file, trials=1, capture=capture)
        for exchange in analysis.exchanges:
            for phase in exchange.phases:
                if phase.name.value in _PHASES:
                    seen[f"netdiag {exchange.arm}", phase.name.value].append(phase.duration_ns / 1e6)
    with capsys.disabled():
        print(f"\n{ROUNDS} rounds, capture {capture}, ms (median)")
        for who in ("curl h1", "netdiag h1", "curl h2", "netdiag h2"):
            print(f"  {who:<11}" + "".join(f"{name:>10} {statistics.median(seen[who, name]):7.2f}" for name in _PHASES))
    assert len(seen) == 16
