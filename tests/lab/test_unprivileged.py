"""The whole of tier T2 without privilege: in a user namespace of its own, where the kernel allows one."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOBODY = 65534
DROPPED = ["--bounding-set=-all,+setfcap", "--inh-caps=-all", "--ambient-caps=-all"]
SETFCAP = 1 << 31
"""The only capability kept: without it the kernel lets nobody map user 0 (user_namespaces(7)). It is of no use for networks."""

PROGRAM = """
import json, sys
from netdiag.lab.behaviour import Behaviour
from netdiag.lab.config import LabConfig
from netdiag.lab.path import Path
from netdiag.lab.testbed import Testbed

server = LabConfig(behaviour=Behaviour(wait_ms=40))
with Testbed(path=Path.from_mapping({"rtt_ms": 30}), server=server) as bed:
    command = [sys.executable, "-m", "netdiag", "probe", bed.url + "/v1/models", "--cacert", bed.server.ca_file]
    done = bed.run([*command, "--json", "--arm", "h1", "-n", "2"])
assert done.returncode == 0, done.stderr
added = [(r.left_at - r.arrived_at) / 1e6 for r in bed.link_rows if r.left_at is not None]
outer = open("/proc/self/uid_map").read().split()[1]
print(json.dumps({"outer_uid": outer, "document": json.loads(done.stdout), "added_ms": added}))
"""


def as_nobody() -> list[str]:
    """A prefix that gives up what root can do: all of its identity where nobody may run this interpreter, else all capabilities but one."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None or shutil.which("unshare") is None:
        pytest.skip("setpriv and unshare (util-linux) are not there, so root cannot be left")
    nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    inside = [*nobody, "unshare", "-Urnm", sys.executable, "-c", "import netdiag"]
    may_run = subprocess.run(inside, cwd="/", capture_output=True, check=False)
    return nobody if may_run.returncode == 0 else ["setpriv", *DROPPED]


def unprivileged(program: str, folder: Path) -> str:
    """Run it in new user, network and mount namespaces; skips with the reason where the kernel does not allow them."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare (util-linux) is not there, so no user namespace is tried")
    prefix = [*as_nobody(), "unshare", "-Urnm"]
    allowed = subprocess.run([*prefix, "true"], capture_output=True, text=True, check=False)
    if allowed.returncode:
        pytest.skip(f"no unprivileged user namespaces here: {allowed.stderr.strip()}")
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(folder), "TMPDIR": "/tmp"}
    command = [*prefix, sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, cwd="/", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.netns
@pytest.mark.xdist_group("timing")
def test_the_testbed_needs_no_privilege(tmp_path: Path) -> None:
    for _ in range(3):  # a busy machine only adds
        said = json.loads(unprivileged(PROGRAM, tmp_path))
        exchanges = said["document"]["exchanges"]
        phases = [{p["name"]: p["duration_ns"] / 1e6 for p in e["phases"]} for e in exchanges]
        added_ms = statistics.median(said["added_ms"])
        tcp_ms, wait_ms = (statistics.median(p[name] for p in phases) for name in ("tcp", "wait"))
        if abs(added_ms - 15) < 0.1 and abs(tcp_ms - 30) < 1.5 and abs(wait_ms - 70) < 1.5:
            break
    else:
        pytest.fail(f"added {added_ms}, tcp {tcp_ms}, wait {wait_ms} ms")
    assert [e["outcome"] for e in exchanges] == ["ok"] * 3
    assert said["document"]["source"]["evidence_level"] in ("L1", "L2", "L3")
    assert said["outer_uid"] == str(os.geteuid()) or said["outer_uid"] == str(NOBODY)


def test_the_prefix_leaves_no_capability_that_matters() -> None:
    prefix = as_nobody()
    if not prefix:
        pytest.skip("not run as root, so there is nothing to give up")
    shown = subprocess.run(
        [*prefix, "cat", "/proc/self/status"], capture_output=True, text=True, check=True, cwd="/"
    ).stdout
    effective = next(line for line in shown.splitlines() if line.startswith("CapEff"))
    assert int(effective.split()[1], 16) & ~SETFCAP == 0
