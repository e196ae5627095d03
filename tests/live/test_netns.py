"""The probe over a real interface with delay, its own name server and no loopback short cuts: in network namespaces of the lab."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest

from netdiag.lab import namespaces
from netdiag.lab.behaviour import Behaviour
from netdiag.lab.config import LabConfig
from netdiag.lab.path import Path
from netdiag.lab.testbed import HOST, Testbed

_REASON = namespaces.why_not()
pytestmark = [
    pytest.mark.live,
    pytest.mark.netns,
    pytest.mark.skipif(_REASON is not None, reason=f"no network namespaces here: {_REASON}"),
    pytest.mark.xdist_group("timing"),
]
RTT_MS, DNS_MS, WAIT_MS = 20, 30, 50

_PROBE = """
import json, sys, netdiag
a = netdiag.probe(sys.argv[1], cacert=sys.argv[2], capture=sys.argv[3], trials=2)
rows = [
    {"arm": e.arm, "unattributed": e.unattributed_ns / 1e6, "clocks": {p.name: p.clock for p in e.phases}}
    | {p.name: p.duration_ns / 1e6 for p in e.phases}
    for e in a.exchanges
]
json.dump({"level": a.source.evidence_level, "complete": [c.complete for c in a.connections], "rows": rows,
           "lookups": sorted({r.connection_id for r in a.resolutions}), "note": a.source.note}, sys.stdout)
"""


@pytest.fixture(scope="module")
def bed() -> Iterator[Testbed]:
    """Client and server 20 ms apart; the name server takes 30 ms more."""
    zone = {HOST: {"addresses": {"A": ["192.0.2.1"]}, "delay_ms": {"A": DNS_MS}}}
    server = LabConfig(behaviour=Behaviour(wait_ms=WAIT_MS))
    with Testbed(path=Path.from_mapping({"rtt_ms": RTT_MS}), zone=zone, server=server) as running:
        yield running


@pytest.mark.parametrize(("capture", "level"), [("dumpcap", "L3"), ("scapy", "L3"), ("none", "L1")])
def test_every_phase_is_the_paths_and_the_servers(bed: Testbed, capture: str, level: str) -> None:
    done = bed.run([sys.executable, "-c", _PROBE, bed.url + "/v1/models", bed.server.ca_file, capture])
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["level"] == level, said["note"]
    assert len(said["rows"]) == 6
    expected = {"dns": DNS_MS + RTT_MS, "tcp": RTT_MS, "wait": WAIT_MS + RTT_MS}
    for name, ms in expected.items():
        seen = min(row[name] for row in said["rows"])  # the least disturbed: the machine may be busy
        assert ms - 0.5 < seen < ms + 8, (name, said)
    assert all(row["tls"] > RTT_MS for row in said["rows"])
    assert all(row["unattributed"] < 200 for row in said["rows"]), said
    if level == "L3":
        assert said["complete"] == [True] * 6  # the server's last FIN as well
        assert said["lookups"] == [0, 1, 2, 3, 4, 5]
        assert {row["clocks"][name] for row in said["rows"] for name in expected} == {"wire"}
