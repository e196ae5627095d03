"""The repository's small captures: what netdiag says about each is written beside it, and is measured against what the lab knows.

``pytest tests/captures --regenerate`` writes ``NAME.expected.json`` anew; review the diff.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from netdiag import api
from netdiag.export import json as json_export
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange

FOLDER = Path(__file__).parents[2] / "captures"
CAPTURES = sorted(FOLDER.glob("*.pcapng"))
BUILT = [file for file in CAPTURES if file.stem.startswith("built-")]
PATH = [file for file in CAPTURES if file.stem.startswith("path-")]
REAL = [file for file in CAPTURES if file not in BUILT and file not in PATH]
WITHIN_NS = 1_000_000
"""Wire times against the real server's own log on loopback (scheduling on both sides is in it)."""


def named(file: Path) -> str:
    return file.stem


def document(file: Path) -> dict[str, Any]:
    """The JSON document without what changes from machine to machine and version to version."""
    whole: dict[str, Any] = json.loads(json_export.dumps(api.analyze(file)))
    whole.pop("netdiag_version")
    whole["source"]["path"] = file.name
    return whole


def truth(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.with_suffix(".truth.json").read_text())
    return found


def differences(expected: Any, found: Any, where: str = "") -> Iterator[str]:
    """What is not as it was. Keys that are new are no difference (a version of the document may gain keys)."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            if key in found:
                yield from differences(value, found[key], f"{where}.{key}")
            else:
                yield f"{where}.{key}: gone"
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for place, (before, after) in enumerate(zip(expected, found, strict=True)):
            yield from differences(before, after, f"{where}[{place}]")
    elif expected != found:
        yield f"{where}: was {expected!r}, is {found!r}"


@pytest.mark.parametrize("file", CAPTURES, ids=named)
def test_says_what_it_said(file: Path, regenerate: bool) -> None:
    expected = file.with_suffix(".expected.json")
    found = document(file)
    if regenerate:
        expected.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    assert list(differences(json.loads(expected.read_text(encoding="utf-8")), found)) == []


@pytest.mark.parametrize("file", CAPTURES, ids=named)
def test_is_small_and_described(file: Path) -> None:
    assert file.stat().st_size < 100_000
    assert f"`{file.stem}`" in (FOLDER / "README.md").read_text(encoding="utf-8")


def phase_ns(exchange: Exchange, name: str) -> int | None:
    spans = [p.duration_ns for p in exchange.phases if p.name == name]
    return sum(spans) if spans else None


@pytest.mark.parametrize("file", BUILT, ids=named)
def test_built_captures_are_split_to_the_nanosecond(file: Path) -> None:
    exchanges = api.analyze(file).exchanges
    for true, found in zip(truth(file)["exchanges"], exchanges, strict=True):
        names = dict.fromkeys(span["name"] for span in true["phases"])
        wanted = {n: sum(s["duration_ns"] for s in true["phases"] if s["name"] == n) for n in names}
        assert {name: phase_ns(found, name) for name in wanted} == wanted
        assert found.total_ns == true["total_ns"]


def paired(file: Path) -> list[tuple[dict[str, Any], Exchange, Analysis]]:
    """The server's rows with netdiag's exchanges: by connection, stream and order."""
    analysis = api.analyze(file)
    out = []
    for true in truth(file)["exchanges"]:
        match = [
            e
            for e in analysis.exchanges
            if e.connection_id is not None
            and str(analysis.connections[e.connection_id].client) == true["client"]
            and e.stream_id == true["stream_id"]
            and (e.stream_id is not None or e.ordinal == true["request"])
        ]
        assert len(match) == 1, f"{len(match)} exchanges for {true['path']}"
        out.append((true, match[0], analysis))
    return out


@pytest.mark.parametrize("file", REAL, ids=named)
def test_real_captures_agree_with_the_server(file: Path) -> None:
    for true, found, _ in paired(file):
        assert found.status == true["status"]
        assert found.path is not None
        assert found.path.split("?")[0] == true["path"].split("?")[0]
        wait = phase_ns(found, "wait")
        assert wait is not None
        head_late = wait - (true["headers_at"] - true["request_last_at"])
        assert abs(head_late) < WITHIN_NS


@pytest.mark.parametrize("file", [f for f in REAL if "stream" in f.stem], ids=named)
def test_events_come_when_the_server_wrote_them(file: Path) -> None:
    streamed = [(t, f) for t, f, _ in paired(file) if f.stream is not None]
    assert streamed
    for true, found in streamed:
        assert found.stream is not None
        written = [e["written_at"] for e in true["events"]]
        seen = [e.deliverable_at for e in found.stream.timeline]
        assert len(seen) == len(written)
        for (a, b), (x, y) in zip(pairwise(seen), pairwise(written), strict=True):
            assert abs((b - a) - (y - x)) < WITHIN_NS


def test_over_a_path_the_injected_cause_is_found_where_it_was_put() -> None:
    (lost,) = api.analyze(FOLDER / "path-syn-lost.pcapng").exchanges
    assert 1_035e6 < (phase_ns(lost, "tcp") or 0) < 1_100e6, "40 ms, and 1 s until the SYN is sent again"
    (slow,) = api.analyze(FOLDER / "path-slow-link.pcapng").exchanges
    assert (phase_ns(slow, "transfer") or 0) > 40_000 * 8 * 1000 * 0.95, "40 kB at 1 Mbit/s"
    stalled = api.analyze(FOLDER / "path-loss-in-stream.pcapng")
    (streamed,) = stalled.exchanges
    assert (streamed.loss_ns or 0) > 60e6, "at least most of a round trip of 80 ms"
    assert stalled.connections[0].sides.server.retransmitted_segments == 1


@pytest.mark.parametrize("file", [f for f in PATH if f.stem != "path-slow-link"], ids=named)
def test_over_a_path_the_wait_holds_one_round_trip(file: Path) -> None:
    known = truth(file)
    (true,), (found,) = known["exchanges"], api.analyze(file).exchanges
    wait = phase_ns(found, "wait")
    assert wait is not None
    expected = true["headers_at"] - true["request_last_at"] + known["rtt_ms"] * 1e6
    assert wait == pytest.approx(expected, abs=3e6)


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed: no witness for the captures")
@pytest.mark.parametrize("file", CAPTURES, ids=named)
def test_tshark_reads_the_same_statuses(file: Path) -> None:
    analysis = api.analyze(file)
    decode_as = [
        f"tcp.port=={c.server.port},http2" for c in analysis.connections if c.tls is None and c.http_version == "h2"
    ]
    command = ["tshark", "-r", str(file), "-o", "tcp.reassemble_out_of_order:TRUE", "-T", "fields"]
    command += [word for rule in decode_as for word in ("-d", rule)]
    command += ["-Y", "http.response or http2.headers.status", "-e", "http.response.code", "-e", "http2.headers.status"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    cells = [cell for line in result.stdout.splitlines() for cell in line.split("\t")]
    seen = sorted(int(code) for cell in cells for code in cell.split(",") if code and int(code) >= 200)
    assert seen == sorted(e.status for e in analysis.exchanges if e.status is not None)
