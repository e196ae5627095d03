"""Key logs as people have them, on a public capture: shuffled, with foreign lines, half of the sessions, damaged, one direction."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

import netdiag
from netdiag.export.text import report
from netdiag.records.analysis import Analysis
from tests.support.public_captures import folder, keylog_of
from tests.support.tools import needs_public_captures

CAPTURE = "cisco+mercury/test_decrypt.pcap"
FOREIGN = [b"CLIENT_RANDOM " + b"%02x" % n * 32 + b" " + b"cd" * 48 for n in range(50)]
Lines = list[bytes]


def lines() -> Lines:
    keylog = keylog_of(CAPTURE)
    assert keylog is not None
    return keylog.read_bytes().splitlines()


def opened(keylog: Lines, tmp_path: Path) -> Analysis:
    path = tmp_path / "keys.txt"
    path.write_bytes(b"\n".join(keylog) + b"\n")
    return netdiag.analyze(folder() / CAPTURE, keylog=path)


def decrypted(analysis: Analysis) -> int:
    return sum(1 for c in analysis.connections if c.tls is not None and c.tls.decrypted)


def shuffled(given: Lines) -> Lines:
    return random.Random(1).sample(given, len(given))


@needs_public_captures
@pytest.mark.parametrize(
    "change",
    [
        shuffled,
        lambda given: FOREIGN + given,
        lambda given: given + given,
        lambda given: [b"# x", b"", *given, b"junk"],
    ],
    ids=["shuffled", "foreign", "twice", "comments and junk"],
)
def test_what_is_harmless_changes_no_request(change: Callable[[Lines], Lines], tmp_path: Path) -> None:
    whole, changed = opened(lines(), tmp_path), opened(change(lines()), tmp_path)
    assert decrypted(whole) > 10
    assert decrypted(changed) == decrypted(whole)
    assert list(changed.exchanges) == list(whole.exchanges)


@needs_public_captures
def test_half_of_the_sessions_are_opened_and_the_missing_secret_is_named(tmp_path: Path) -> None:
    whole, given = opened(lines(), tmp_path), lines()
    randoms = sorted({line.split()[1] for line in given})
    kept = set(randoms[: len(randoms) // 2])
    half = opened([line for line in given if line.split()[1] in kept], tmp_path)
    assert 0 < decrypted(half) < decrypted(whole)
    closed = [c.tls for c in half.connections if c.tls is not None and not c.tls.decrypted]
    assert closed
    assert all(tls.missing_secret for tls in closed if tls.finished_at is not None)
    text = "\n".join(line.plain for line in report(half, width=160))
    assert "the key log has no " in text
    assert "TLS sessions" in text
    assert not any(line.split()[2].decode() in text for line in given)


@needs_public_captures
def test_damaged_lines_cost_only_their_own_secret(tmp_path: Path) -> None:
    given = lines()
    damaged = [line[:-3] if number % 9 == 0 else line for number, line in enumerate(given)]
    found = opened(damaged, tmp_path)
    assert 0 < decrypted(found) <= decrypted(opened(given, tmp_path))
    assert found.source.secrets.entries < len(given)


@needs_public_captures
def test_one_direction_alone_is_read(tmp_path: Path) -> None:
    found = opened([line for line in lines() if not line.startswith(b"CLIENT_TRAFFIC_SECRET")], tmp_path)
    assert {c.tls.missing_secret for c in found.connections if c.tls is not None} & {"CLIENT_TRAFFIC_SECRET_0"}
