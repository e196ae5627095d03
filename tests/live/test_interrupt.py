"""^C, SIGTERM and SIGKILL in the middle of a probe: no recorder, no key and (but for SIGKILL) no file is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from netdiag.capture.privileges import ability
from netdiag.lab import Behaviour
from tests.support.lab import StartLab
from tests.support.probing import settles

pytestmark = pytest.mark.live


def recorders_in(folder: Path) -> list[str]:
    """Command lines of processes that write into a folder."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                line = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if str(folder) in line and "netdiag.cli" not in line:
                found.append(line)
    return found


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_probe_that_is_ended_from_outside(start_lab: StartLab, tmp_path: Path, number: int, code: int) -> None:
    if not ability().allowed:
        pytest.skip(f"no capture here: {ability().note}")
    server = start_lab(Behaviour(wait_ms=50))
    main = "from netdiag.cli.main import main; main()"
    probe = subprocess.Popen(
        [sys.executable, "-c", main, "probe", server.url + "/v1/models", "--cacert", server.ca_file, "-n", "200"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    settles(lambda: len(server.log.exchanges()) > 3, within_s=15)
    assert recorders_in(tmp_path)
    probe.send_signal(number)
    began_s = time.monotonic()
    assert probe.wait(10) == code
    assert time.monotonic() - began_s < (8 if number == signal.SIGINT else 3)  # ^C still gets its report
    settles(lambda: not recorders_in(tmp_path))
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    if number != signal.SIGKILL:
        assert left == []
    assert not any(b"TRAFFIC_SECRET" in path.read_bytes() for path in left)
    assert tempfile.gettempdir() != str(tmp_path)
