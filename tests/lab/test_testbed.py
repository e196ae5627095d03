"""The whole bench with an independent client: curl sees the delays that were put there."""

from __future__ import annotations

import json
import subprocess

import pytest

from netdiag.lab import namespaces
from netdiag.lab.behaviour import Behaviour
from netdiag.lab.config import LabConfig
from netdiag.lab.path import Path
from netdiag.lab.testbed import HOST, Testbed

_REASON = namespaces.why_not()
pytestmark = [
    pytest.mark.netns,
    pytest.mark.peers,
    pytest.mark.skipif(_REASON is not None, reason=f"no network namespaces here: {_REASON}"),
    pytest.mark.xdist_group("timing"),
]


def curl(bed: Testbed, *options: str) -> dict[str, float]:
    done = bed.run(
        [
            "curl",
            "-sS",
            "-o",
            "/dev/null",
            "-w",
            "%{json}",
            "--cacert",
            bed.server.ca_file,
            *options,
            bed.url + "/v1/models",
        ]
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_curl_sees_the_delays_that_were_put_there():
    zone = {HOST: {"addresses": {"A": ["192.0.2.1"]}, "delay_ms": {"A": 50}}}
    server = LabConfig(behaviour=Behaviour(wait_ms=100))
    with Testbed(path=Path.from_mapping({"rtt_ms": 40}), zone=zone, server=server) as bed:
        seen = curl(bed, "--http1.1", "-4")
    dns_ms = seen["time_namelookup"] * 1e3
    tcp_ms = (seen["time_connect"] - seen["time_namelookup"]) * 1e3
    wait_ms = (seen["time_starttransfer"] - seen["time_pretransfer"]) * 1e3
    assert dns_ms == pytest.approx(90, abs=15)
    assert tcp_ms == pytest.approx(40, abs=3)
    assert wait_ms == pytest.approx(140, abs=6)
    assert [row["name"] for row in bed.dns_rows] == [HOST] * len(bed.dns_rows)
    assert len(bed.link_rows) > 12
    assert bed.kernel["tcp_congestion_control"]


def test_settings_of_the_kernel_are_pinned_inside_only():
    with Testbed(sysctl={"tcp_congestion_control": "reno", "tcp_slow_start_after_idle": "1"}) as bed:
        inside = bed.kernel
    assert (inside["tcp_congestion_control"], inside["tcp_slow_start_after_idle"]) == ("reno", "1")


def test_a_program_that_does_not_end_is_ended():
    with Testbed() as bed, pytest.raises(subprocess.TimeoutExpired):
        bed.run(["sleep", "30"], timeout_s=0.3)
