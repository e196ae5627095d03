"""What we say about rights to capture, with the tools' answers given."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from netdiag.capture import privileges
from netdiag.capture.dumpcap_backend import DumpcapBackend, _counts, failure
from netdiag.capture.live import CaptureFailed
from netdiag.errors import PrivilegeMissing, ToolMissing

REFUSED = """Capturing on 'Loopback: lo'
dumpcap: You do not have permission to capture on device "lo".
(socket: Operation not permitted)"""


def answering(stdout: str, stderr: str, code: int) -> Any:
    """A ``_run`` that answers."""
    return lambda command: subprocess.CompletedProcess(command, code, stdout, stderr)


def test_permission_is_told_by_what_dumpcap_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privileges.shutil, "which", lambda name: f"/usr/bin/{name}")  # type: ignore[attr-defined]
    monkeypatch.setattr(privileges, "_run", answering("", REFUSED, 0))
    with pytest.raises(PrivilegeMissing, match="do not have permission"):
        privileges.check_dumpcap(["lo"])
    monkeypatch.setattr(privileges, "_run", answering("(000) ret #262144\n", "Capturing on 'lo'", 0))
    privileges.check_dumpcap(["lo"])


def test_missing_dumpcap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privileges.shutil, "which", lambda name: None)  # type: ignore[attr-defined]
    with pytest.raises(ToolMissing):
        privileges.check_dumpcap(["lo"])
    found = privileges.ability()
    assert [r.name for r in found.recorders] == ["dumpcap", "scapy", "pyshark"]
    assert not found.recorders[0].installed
    assert not found.recorders[2].allowed
    with pytest.raises(ToolMissing):
        DumpcapBackend().start(None)  # type: ignore[arg-type]


def test_advice_suits_the_place() -> None:
    inside = privileges.advice(contained=True, dumpcap_installed=True)
    outside = privileges.advice(contained=False, dumpcap_installed=False)
    assert "--cap-add NET_RAW" in inside[0]
    assert "install" in outside[0]
    for lines in (inside, outside):
        assert not any("setcap" in line and "python" in line for line in lines)


def test_failures_are_told_apart() -> None:
    assert isinstance(failure(REFUSED.splitlines()), PrivilegeMissing)
    other = failure(["Capturing on 'x'", 'dumpcap: The capture session could not be initiated on device "x".'])
    assert isinstance(other, CaptureFailed)
    assert other.message.startswith("The capture session could not")
    assert isinstance(failure([]), CaptureFailed)


def test_drops_of_kernel_and_recorder_are_summed() -> None:
    line = "Packets received/dropped on interface '{}': 10/6 (pcap:3/dumpcap:2/flushed:1/ps_ifdrop:0) (62.5%)"
    counts = _counts([line.format("lo"), line.format("eth0"), "Packets captured: 20"])
    assert (counts.received, counts.dropped) == (20, 12)
    assert _counts(["nothing of the kind"]).dropped is None


def test_ability_is_a_report() -> None:
    found = privileges.ability()
    assert found.user
    assert found.system
    assert (found.note is None) == found.allowed
    assert (found.best is None) != found.allowed
