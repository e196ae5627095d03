"""Connections judged by columns against the same connections heard one by one, and captures in one part, one process and in memory
against the same in many parts, several processes and a file: every record, number and ranking must be equal."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from netdiag.analysis import partition, sealed
from netdiag.analysis.pipeline import Analysed, analyse
from netdiag.capture import spill
from netdiag.capture.source import open_capture
from netdiag.capture.spill import Spill
from netdiag.errors import NetdiagError
from netdiag.export.json import plain
from netdiag.parallel import map_threaded
from netdiag.records.exchange_table import outcome_counts, slowest
from netdiag.stats.distribution import statistics
from tests.support.public_captures import folder, index
from tests.support.tools import needs_public_captures

CAPTURES = sorted((Path(__file__).parents[2] / "captures").glob("*.pcapng"))


def everything(path: Path, jobs: int = 1) -> tuple[Any, ...]:
    with open_capture(str(path)) as capture:
        found = analyse(
            capture.windows(),
            run=partial(map_threaded, jobs=jobs),
            storage=Spill(capture.buffer),
            size_bytes=capture.size_bytes,
        )
        tables = (found.connections, found.resolutions, found.exchanges, found.anomalies)
        return (*(plain(list(table)) for table in tables), *answers(found))


def answers(found: Analysed) -> tuple[Any, ...]:
    by_columns, by_records = statistics(found.exchanges), statistics(list(found.exchanges))
    assert plain(by_columns) == plain(by_records)
    ranks = [e.id for e in slowest(found.exchanges, 7)]
    assert ranks == [e.id for e in slowest(list(found.exchanges), 7)]
    assert outcome_counts(found.exchanges) == outcome_counts(list(found.exchanges))
    return plain(by_columns), ranks


def assert_same_by_columns(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_columns = everything(path)
    with monkeypatch.context() as patch:
        patch.setattr(sealed, "sealed", _nothing_sealed)
        assert everything(path) == by_columns
    for size, jobs in ((1, 1), (50, 1), (30, 3)):
        with monkeypatch.context() as patch:
            patch.setattr(partition, "PART_PACKETS", size)
            assert everything(path, jobs) == by_columns
    with monkeypatch.context() as patch:
        patch.setattr(spill, "IN_MEMORY_PACKETS", 0)
        patch.setattr(spill, "PARTITION_PACKETS", 20)
        patch.setattr(partition, "PART_PACKETS", 30)
        assert everything(path) == by_columns


def _nothing_sealed(*arguments: Any) -> Any:
    *tables, candidates, openings = arguments
    return SEALED(*tables, np.zeros_like(candidates), openings)


SEALED = sealed.sealed


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_own_captures(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_same_by_columns(path, monkeypatch)


@needs_public_captures
@pytest.mark.slow
def test_public_captures(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    for path in (folder() / name for name in index()):
        try:
            assert_same_by_columns(path, monkeypatch)
            compared += 1
        except NetdiagError:
            continue
    assert compared > 100
