"""The benchmark at a small scale: it runs, and its captures are what they say. No time is asserted; `make bench` prints the ratios."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.big_captures import REPOSITORY, bulk, repeat, secrets_of, template
from tests.benchmarks.speed import count_packets


def test_repeated_conversations_are_whole_and_in_order(tmp_path: Path):
    from netdiag import analyze

    frames = template(REPOSITORY / "captures" / "h1.pcapng")
    out = tmp_path / "many.pcap"
    packets = repeat([frames], 50, out, spread_s=0.5)
    analysis = analyze(str(out))
    assert packets == count_packets(out) == 50 * len(frames)
    assert len(analysis.connections) == 50
    assert {c.handshake_rtt_ns is not None for c in analysis.connections} == {True}
    assert not analysis.anomalies


def test_a_bulk_download_has_no_holes(tmp_path: Path):
    from netdiag import analyze

    out = tmp_path / "bulk.pcap"
    packets = bulk(template(REPOSITORY / "captures" / "h1.pcapng")[:8], out, connections=2, megabytes=4)
    analysis = analyze(str(out))
    assert packets == count_packets(out)
    assert [c.sides.server.missing_bytes for c in analysis.connections] == [0, 0]
    assert min(c.sides.server.payload_bytes for c in analysis.connections) > 1_900_000


def test_one_key_log_serves_all_copies(tmp_path: Path):
    from netdiag import analyze

    capture, out, keys = REPOSITORY / "captures" / "h1.pcapng", tmp_path / "sessions.pcap", tmp_path / "sessions.keys"
    repeat([template(capture)], 20, out, spread_s=0.5)
    keys.write_bytes(secrets_of(capture))
    analysis = analyze(str(out), keylog=str(keys))
    assert analysis.source.secrets.used == 20
    assert {exchange.status for exchange in analysis.exchanges} == {200}


@pytest.mark.benchmark
def test_speed_side_by_side(tmp_path: Path):
    """`make bench`: prints the tables."""
    done = subprocess.run([sys.executable, "-m", "tests.benchmarks.speed", str(tmp_path)], cwd=REPOSITORY, check=False)
    assert done.returncode == 0
