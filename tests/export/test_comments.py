from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import netdiag
from netdiag import api
from netdiag.analysis.selection import Filter, select
from netdiag.capture.source import open_capture
from netdiag.errors import UsageError
from netdiag.export.comments import comments
from tests.support import analyses
from tests.support.hostile import FORBIDDEN, PAYLOADS

CAPTURES = Path(__file__).parents[2] / "captures"
NAMES = ("h1", "h2", "h1-reused", "h2-several-streams", "built-h2-loss", "clear-text-h2")


def phases_of(path: Path) -> list[tuple[str, int]]:
    return [(str(p.name), p.duration_ns) for e in netdiag.analyze(path).exchanges for p in e.phases]


def test_phases_begin_and_end_in_words() -> None:
    said = comments(analyses.one_request())
    assert said[1] == "#0 dns begins"
    assert said[10] == "#0 wait ends after 214.9 ms"


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_hostile_text_is_harmless_in_a_comment(payload: str) -> None:
    from dataclasses import replace

    analysis = analyses.one_request()
    e = replace(analysis.exchanges[0], path=payload, authority=payload, request_packet=7)
    for text in comments(replace(analysis, exchanges=(e,))).values():
        assert not FORBIDDEN.search(text)


@pytest.mark.parametrize("name", NAMES)
def test_a_commented_copy_says_the_same(name: str, tmp_path: Path) -> None:
    original, copy = CAPTURES / f"{name}.pcapng", tmp_path / "copy.pcapng"
    analysis = netdiag.analyze(original)
    assert api.annotate(original, copy, analysis=analysis, embed_keys=True) == analysis.source.packets
    assert netdiag.analyze(copy).source.evidence_level == analysis.source.evidence_level
    assert phases_of(copy) == phases_of(original)
    assert copy.stat().st_mode & 0o777 == 0o600
    with open_capture(copy) as capture:
        list(capture.windows())
        # The original's comments are not repeated; ours lie on the packets that they are about.
        assert {c.packet: c.text for c in capture.comments if c.packet is not None} == comments(analysis)


def test_keys_are_not_copied_unless_asked(tmp_path: Path) -> None:
    original, copy = CAPTURES / "h1.pcapng", tmp_path / "copy.pcapng"
    api.annotate(original, copy, analysis=netdiag.analyze(original))
    assert b"TRAFFIC_SECRET" in original.read_bytes()
    assert b"TRAFFIC_SECRET" not in copy.read_bytes()
    assert netdiag.analyze(copy).source.evidence_level == "L2"


def test_a_part_is_its_connections_and_their_name_resolution(tmp_path: Path) -> None:
    original, copy = CAPTURES / "built-dns-h1.pcapng", tmp_path / "copy.pcapng"
    analysis = netdiag.analyze(original)
    none = select(analysis, Filter(ports=(1,)))
    assert api.annotate(original, copy, analysis=none, only_its_connections=True) == 0
    whole = select(analysis, Filter(ports=(443,)))
    api.annotate(original, tmp_path / "whole.pcapng", analysis=whole, only_its_connections=True, embed_keys=True)
    assert phases_of(tmp_path / "whole.pcapng") == phases_of(original)


def test_standard_input_cannot_be_copied(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="standard input"):
        api.annotate("-", tmp_path / "x.pcapng", analysis=analyses.one_request())


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_wireshark_reads_packets_and_comments(tmp_path: Path) -> None:
    original, copy = CAPTURES / "h2-several-streams.pcapng", tmp_path / "copy.pcapng"
    analysis = netdiag.analyze(original)
    api.annotate(original, copy, analysis=analysis, embed_keys=True)
    fields = ["-T", "fields", "-e", "frame.number", "-e", "frame.comment", "-e", "frame.time_epoch"]
    out = subprocess.run(
        ["tshark", "-r", str(copy), *fields], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    rows = [line.split("\t") for line in out.splitlines()]
    assert len(rows) == analysis.source.packets
    assert {int(number): text for number, text, _ in rows if text} == comments(analysis)
    first, _, fraction = rows[0][2].partition(".")
    assert int(first + fraction.ljust(9, "0")) == analysis.source.first_at
