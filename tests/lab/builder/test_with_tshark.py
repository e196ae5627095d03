"""tshark as the independent witness: it decrypts what the builder wrote, without complaint, and sees the same requests at the same times."""

from __future__ import annotations

import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest

from netdiag.lab.builder.output import record
from netdiag.lab.scenario import bundled, bundled_names

pytestmark = [
    pytest.mark.tshark,
    pytest.mark.skipif(
        shutil.which("tshark") is None, reason="tshark is not installed: no witness for the built captures"
    ),
]
_NOT_READABLE = {"cut-frames", "begins-late", "lost-by-capture", "refused"}
"""By design: octets are missing, or there is no answer. (Keys may be missing too: the scenario says so.)"""
_BROKEN_OFF = {"reset-in-body", "truncated-body"}
"""The answer is incomplete; tshark then shows no HTTP/1 head."""
_NOTHING_NEW = {
    "at-server",
    "buffering-hop",
    "cold-start",
    "connection-each-time",
    "idle-close",
    "long-prompt",
    "rate-limited",
    "server-queue",
    "slow-dns",
    "slow-link",
    "slow-path",
    "slow-start",
    "stream-stall",
    "tls-slow-server",
    "without-keys",
}
"""Their octets are like others', only the times differ: witnessed in long runs."""
WITNESSED = [pytest.param(n, marks=pytest.mark.slow if n in _NOTHING_NEW else ()) for n in bundled_names()]
_CHECKS = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-o", "tcp.reassemble_out_of_order:TRUE")


def tshark(file: Path, *arguments: str) -> list[list[str]]:
    """Rows of tab-separated fields."""
    result = subprocess.run(
        ["tshark", "-r", str(file), *_CHECKS, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    return [line.split("\t") for line in result.stdout.splitlines()]


def fields(file: Path, wanted: str, *names: str) -> list[list[str]]:
    """Fields of the frames that a display filter picks."""
    return tshark(file, "-Y", wanted, "-T", "fields", *(word for name in names for word in ("-e", name)))


@pytest.mark.parametrize("name", WITNESSED)
def test_reads_every_scenario_without_complaint(name: str, tmp_path: Path) -> None:
    recorded = record(bundled(name))
    file = tmp_path / "x.pcapng"
    file.write_bytes(recorded.capture)
    bad = fields(file, "_ws.malformed or tcp.checksum.status == 0 or ip.checksum.status == 0", "frame.number")
    assert bad == []
    if name in _NOT_READABLE | _BROKEN_OFF or bundled(name).capture.secrets != "all":
        return
    rows = fields(file, "http.response or http2.headers.status", "http.response.code", "http2.headers.status")
    seen = sorted(int(code) for row in rows for cell in row for code in cell.split(",") if code and int(code) >= 200)
    assert seen == sorted(e.status for e in recorded.truth.exchanges if e.status is not None)


@pytest.mark.parametrize("name", ["clean-h1", "tls12", "syn-lost", "ipv6", "vlan", "at-server"])
def test_handshakes_at_the_same_instants(name: str, tmp_path: Path) -> None:
    recorded = record(bundled(name))
    file = tmp_path / "x.pcapng"
    file.write_bytes(recorded.capture)
    syn_acks = fields(file, "tcp.flags.syn == 1 and tcp.flags.ack == 1", "frame.number", "frame.time_epoch")
    for connection, (number, at) in zip(recorded.truth.connections, syn_acks, strict=True):
        assert connection.syn_ack_packet == int(number)
        assert connection.syn_ack_at == int(Decimal(at) * 1_000_000_000)


@pytest.mark.parametrize(
    ("name", "side", "label"),
    [
        ("loss-fast", "server", "tcp.analysis.fast_retransmission"),
        ("loss-timeout", "client", "tcp.analysis.retransmission"),
        ("zero-window", "client", "tcp.analysis.zero_window"),
        ("keep-alive", "client", "tcp.analysis.keep_alive"),
        ("reordered", "server", "tcp.analysis.out_of_order"),
    ],
)
def test_recognises_the_injected_cause(name: str, side: str, label: str, tmp_path: Path) -> None:
    file = tmp_path / "x.pcapng"
    file.write_bytes(record(bundled(name)).capture)
    port = "tcp.srcport" if side == "server" else "tcp.dstport"
    assert fields(file, f"{label} and {port} == 443", "frame.number") != []


def test_sees_the_first_octet_of_each_answer_in_the_frame_that_the_truth_names(tmp_path: Path) -> None:
    recorded = record(bundled("several-streams"))
    file = tmp_path / "x.pcapng"
    file.write_bytes(recorded.capture)
    rows = fields(file, "http2.headers.status", "frame.number", "http2.streamid")
    named = {(e.stream_id, e.response_packet) for e in recorded.truth.exchanges}
    for stream_id, packet in named:
        assert any(int(number) == packet and str(stream_id) in streams.split(",") for number, streams in rows)
