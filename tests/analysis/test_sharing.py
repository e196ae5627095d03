"""Windows and parts shared by threads: the result is that of one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from netdiag import api
from netdiag.analysis import partition
from netdiag.export.json import document

CAPTURES = sorted((Path(__file__).parents[2] / "captures").glob("*.pcapng"))


@pytest.fixture
def restless(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small parts, and threads that take turns all the time."""
    monkeypatch.setattr(partition, "PART_PACKETS", 5)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_with_keys_too(path: Path) -> None:
    alone = api.analyze(path, jobs=1)
    assert alone.source.secrets is None or alone.source.secrets.used or "clear" in path.stem
    assert document(api.analyze(path, jobs=4)) == document(alone)


@pytest.mark.usefixtures("restless")
def test_many_connections(tmp_path: Path) -> None:
    """All of netdiag's own captures in one, whose connections are decoded at the same time."""
    whole = tmp_path / "all.pcapng"
    whole.write_bytes(b"".join(path.read_bytes() for path in CAPTURES))  # sections may follow each other in a file
    alone = document(api.analyze(whole, jobs=1))
    assert len(alone["connections"]) > 10
    for _ in range(3):
        assert document(api.analyze(whole, jobs=4)) == alone
