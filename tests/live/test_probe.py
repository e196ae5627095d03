"""The probe under a capture: the kernel's stamps against the packets', the rights of a stranger, a running event loop, curl beside it."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import netdiag
from netdiag.capture.privileges import ability
from netdiag.lab import Behaviour
from netdiag.probe.measure import Measurement, measured
from netdiag.records.recording import ClientConnection
from netdiag.records.source import EvidenceLevel
from tests.support.lab import StartLab
from tests.support.probing import NS_PER_MS, children, config_for, foreign_threads, open_descriptors, settles

pytestmark = pytest.mark.live


def payload_ends(path: str) -> dict[tuple[int, int], dict[int, int]]:
    """(source port, destination port) to: stream position after each segment to its capture stamp. For connections seen whole."""
    done = subprocess.run(
        f"tshark -r {path} -Y tcp -T fields -e frame.time_epoch -e tcp.srcport -e tcp.dstport -e tcp.len -e tcp.seq".split(),
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    ends: dict[tuple[int, int], dict[int, int]] = {}
    for line in done.stdout.splitlines():
        at, source, destination, length, seq = line.split("\t")
        if int(length):
            stamps = ends.setdefault((int(source), int(destination)), {})
            stamps.setdefault(int(seq) - 1 + int(length), int(at.replace(".", "")))
    return ends


def differences(connection: ClientConnection, ends: dict[tuple[int, int], dict[int, int]], direction: int) -> list[int]:
    """Kernel stamp minus capture stamp of every operation that ends where a segment ends."""
    assert connection.client is not None
    assert connection.server is not None
    ports = (connection.client.port, connection.server.port)
    stamps = ends[ports if direction == 0 else ports[::-1]]
    position, found = 0, []
    for operation in connection.operations:
        if operation.direction == direction:
            position += len(operation.data)
            if position in stamps and operation.kernel_at is not None:
                found.append(operation.kernel_at - stamps[position])
    return found


def probed(server: netdiag.lab.LabServer, tmp_path: Path, backend: str, **options: object) -> tuple[Measurement, str]:
    """A measurement and its kept capture."""
    path = str(tmp_path / "probe.pcapng")
    config = config_for(server, capture=backend, save_capture=path, embed_keys=True, **options)
    with measured(config) as measurement:
        return measurement, path


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_kernel_stamps_equal_the_captures(start_lab: StartLab, tmp_path: Path, fast_backend: str) -> None:
    server = start_lab(Behaviour(wait_ms=10, body_bytes=40_000, body_ms=40, body_pieces=8))
    measurement, path = probed(server, tmp_path, fast_backend, trials=4)
    ends = payload_ends(path)
    received = [d for c in measurement.recording.connections for d in differences(c, ends, 1)]
    sent = [d for c in measurement.recording.connections for d in differences(c, ends, 0)]
    assert len(received) > 40
    assert len(sent) > 30
    assert abs(statistics.median(received)) < 30_000
    assert abs(statistics.median(sent)) < 30_000
    assert sorted(abs(d) for d in received)[int(len(received) * 0.9)] < 100_000


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_the_kept_capture_opens_in_wireshark_with_its_keys(
    start_lab: StartLab, tmp_path: Path, fast_backend: str
) -> None:
    server = start_lab()
    _, path = probed(server, tmp_path, fast_backend, trials=2)
    done = subprocess.run(
        f"tshark -r {path} -d tcp.port=={server.port},tls -Y http.request||http2.headers.method"
        " -T fields -e http.request.method -e http2.headers.method".split(),
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == ["GET"] * 6


def test_analysis_has_every_request_with_its_phases(start_lab: StartLab, backend_name: str) -> None:
    server = start_lab(Behaviour(wait_ms=40))
    analysis = netdiag.probe(config_for(server, capture=backend_name))
    assert analysis.source.kind == "probe"
    assert analysis.source.capture_backend == backend_name
    assert analysis.source.evidence_level is EvidenceLevel.L3
    assert {e.protocol for e in analysis.exchanges} == {"http/1.1", "h2"}
    truth = {e.client: e.wait_ns for e in server.log.exchanges()}
    for exchange in analysis.exchanges:
        phases = {p.name.value: p for p in exchange.phases}
        assert {"tcp", "tls", "send", "wait", "transfer"} <= set(phases)
        assert sum(p.duration_ns for p in exchange.phases) + exchange.unattributed_ns == exchange.total_ns
        assert exchange.connection_id is not None
        wait_ns = truth[str(analysis.connections[exchange.connection_id].client)]
        assert wait_ns is not None
        assert abs(phases["wait"].duration_ns - wait_ns) < 5 * NS_PER_MS


def test_nothing_is_left(start_lab: StartLab, fast_backend: str) -> None:
    server = start_lab()
    netdiag.probe(config_for(server, capture=fast_backend))
    gc.collect()  # a result keeps its capture file mapped as long as it lives
    descriptors, processes = open_descriptors(), children()
    netdiag.probe(config_for(server, capture=fast_backend))
    gc.collect()
    settles(lambda: open_descriptors() <= descriptors)  # the lab, in this process, closes its side when it comes to it
    assert children() == processes
    assert foreign_threads() == []


def test_inside_a_running_event_loop(start_lab: StartLab, fast_backend: str) -> None:
    server = start_lab()
    config = config_for(server, capture=fast_backend, arms=("h1",))

    async def both() -> list[int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticking = asyncio.create_task(tick())
        found = [len((await netdiag.aprobe(config)).exchanges)]
        assert ticks > 5  # the loop went on meanwhile
        ticking.cancel()
        return [*found, len(netdiag.probe(config).exchanges)]

    assert asyncio.run(both()) == [1, 1]


def test_cancelling_aprobe_ends_it(start_lab: StartLab, fast_backend: str) -> None:
    server = start_lab(Behaviour(wait_ms=20))
    processes = children()

    async def cancelled() -> None:
        task = asyncio.create_task(netdiag.aprobe(config_for(server, capture=fast_backend, trials=100)))
        await asyncio.sleep(1.0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())  # waits for the worker thread
    assert children() == processes


_STRANGER = """
import json, os, sys
assert os.getuid() == 65534
import netdiag
from netdiag.errors import NetdiagError
try:
    a = netdiag.probe(sys.argv[1], cacert=sys.argv[2], trials=1, capture=sys.argv[3])
    print(json.dumps({"level": a.source.evidence_level, "note": a.source.note, "exchanges": len(a.exchanges)}))
except NetdiagError as error:
    print(json.dumps({"error": type(error).__name__, "message": error.message}))
"""


# Another user, without groups and without any right, except that of reading the files of an interpreter installed in root's home.
_BECOME_A_STRANGER = [
    *("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set", "-net_raw,-net_admin"),
    *("--inh-caps", "-all,+dac_read_search", "--ambient-caps", "-all,+dac_read_search"),
]


def as_a_stranger(server: netdiag.lab.LabServer, backend: str) -> dict[str, object]:
    """Probe as a user without any right to capture."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("becoming another user needs root and setpriv (util-linux)")
    done = subprocess.run(
        [*_BECOME_A_STRANGER, sys.executable, "-c", _STRANGER, server.url + "/v1/models", server.ca_file, backend],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
        cwd=Path(netdiag.__file__).parents[1],
        env={**os.environ, "HOME": "/nonexistent"},
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return said


def test_without_rights_the_probe_still_works(start_lab: StartLab) -> None:
    said = as_a_stranger(start_lab(), "auto")
    assert said["level"] == "L1"
    assert str(said["note"]).startswith("no packets: ")
    assert "\n" not in str(said["note"])


@pytest.mark.parametrize("backend", ["dumpcap", "scapy", "pyshark"])
def test_a_backend_asked_for_by_name_says_why_not(start_lab: StartLab, backend: str) -> None:
    said = as_a_stranger(start_lab(), backend)
    assert said["error"] in ("PrivilegeMissing", "ToolMissing"), said


def curl(server: netdiag.lab.LabServer, protocol: str) -> dict[str, float]:
    """curl's timings in milliseconds: tcp, tls, wait, transfer."""
    names = ("namelookup", "connect", "appconnect", "pretransfer", "starttransfer", "total")
    flag = "--http2" if protocol == "h2" else "--http1.1"
    form = " ".join(f"%{{time_{name}}}" for name in names)
    done = subprocess.run(
        ["curl", "-s", "-o", os.devnull, flag, "--cacert", server.ca_file, "-w", form, server.url + "/v1/models"],
        check=True,
        capture_output=True,
        text=True,
        timeout=30,
    )
    lookup, connect, app, ready, first, total = (float(word) * 1e3 for word in done.stdout.split())
    return {"tcp": connect - lookup, "tls": app - connect, "wait": first - ready, "transfer": total - first}


@pytest.mark.peers
@pytest.mark.xdist_group("timing")
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_beside_the_probe(start_lab: StartLab, fast_backend: str) -> None:
    """Medians, interleaved. On HTTP/2 curl's time_starttransfer is that of the server's SETTINGS, so only HTTP/1.1's wait is compared."""
    server = start_lab(Behaviour(wait_ms=30, body_bytes=20_000, body_ms=25, body_pieces=5))
    seen: dict[str, list[float]] = {}
    ours: dict[str, list[float]] = {}
    for _ in range(4):
        for name, value in curl(server, "h1").items():
            seen.setdefault(name, []).append(value)
        analysis = netdiag.probe(config_for(server, capture=fast_backend, arms=("h1",), trials=2))
        for exchange in analysis.exchanges:
            for phase in exchange.phases:
                ours.setdefault(phase.name.value, []).append(phase.duration_ns / NS_PER_MS)
    typical = {name: (statistics.median(ours[name]), statistics.median(seen[name])) for name in seen}
    for name, (we, they) in typical.items():
        assert we < they + 10, (name, typical)  # on a busy machine; tests/benchmarks measures it finely
    for name in ("wait", "transfer"):
        assert abs(typical[name][0] - typical[name][1]) < 10, (name, typical)


def phase_ns(phases: object, name: str) -> int:
    """Duration of a phase, 0 when there is none."""
    return sum(p.duration_ns for p in phases if p.name.value == name)  # type: ignore[attr-defined]


@pytest.mark.xdist_group("timing")
def test_kernel_and_wire_agree_phase_by_phase(start_lab: StartLab, fast_backend: str) -> None:
    """A read is stamped with its last segment's arrival, so segments that come while the reader wakes up (0.1 to 0.3 ms) count together."""
    server = start_lab(Behaviour(wait_ms=25, body_bytes=60_000, body_ms=40, body_pieces=6))
    analysis = netdiag.probe(config_for(server, capture=fast_backend, trials=5))
    errors: dict[str, list[int]] = {}
    for exchange in analysis.exchanges:
        assert exchange.clocks is not None
        kernel, wire = exchange.clocks["kernel"].phases, exchange.clocks["wire"].phases
        for name in ("send", "wait", "transfer"):
            errors.setdefault(name, []).append(abs(phase_ns(kernel, name) - phase_ns(wire, name)))
    for name, values in errors.items():
        assert statistics.median(values) < 1 * NS_PER_MS, (name, values)


@pytest.mark.xdist_group("timing")
@pytest.mark.parametrize("capture", ["none", "auto"])
def test_a_blocked_client_is_the_clients_own_lag(
    start_lab: StartLab, monkeypatch: pytest.MonkeyPatch, capture: str
) -> None:
    """Blocking the client for 80 ms while the answer lies ready leaves wait and transfer as they are."""
    server = start_lab(Behaviour(wait_ms=25, body_bytes=40_000))
    pieces, slept_ns = httpx.Response.iter_raw, list[int]()

    def slowly(response: httpx.Response) -> Iterator[bytes]:
        for number, piece in enumerate(pieces(response)):
            if number == 0:
                began_ns = time.monotonic_ns()
                time.sleep(0.08)
                slept_ns.append(time.monotonic_ns() - began_ns)
            yield piece

    def measure() -> list[dict[str, int]]:
        analysis = netdiag.probe(config_for(server, capture=capture, trials=3))
        names = ("wait", "transfer", "deliver")
        return [{name: phase_ns(e.phases, name) for name in names} for e in analysis.exchanges]

    quick = measure()
    monkeypatch.setattr(httpx.Response, "iter_raw", slowly)
    blocked = measure()
    for name in ("wait", "transfer"):
        least = [min(row[name] for row in rows) for rows in (quick, blocked)]
        assert abs(least[1] - least[0]) < 3 * NS_PER_MS, (name, least)
    lag_ns = min(row["deliver"] for row in blocked)
    assert abs(lag_ns - min(slept_ns)) < 2 * NS_PER_MS


_ONE_OF_MANY = """
import json, sys, netdiag
a = netdiag.probe(sys.argv[1], cacert=sys.argv[2], trials=2)
print(json.dumps([len(a.connections), len(a.exchanges), sorted({str(e.arm) for e in a.exchanges})]))
"""


def test_probes_at_the_same_time_see_only_their_own(start_lab: StartLab) -> None:
    if not ability().allowed:
        pytest.skip(f"no capture here: {ability().note}")
    server = start_lab(Behaviour(wait_ms=60))
    command = [sys.executable, "-c", _ONE_OF_MANY, server.url + "/v1/models", server.ca_file]
    several = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    for one in several:
        said, _ = one.communicate(timeout=60)
        assert json.loads(said) == [6, 6, ["h1", "h2"]]
