"""HTTP/2 connections whose turns are columns, and TLS records opened in a row, against the same heard one by one: every record, number and
ranking of a capture must be equal. And how many connections take that way, so that it cannot go out of use unseen."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from netdiag import api
from netdiag.analysis import multiplexed
from netdiag.analysis.multiplexed import Multiplexed
from netdiag.errors import NetdiagError
from netdiag.export.json import plain
from netdiag.lab.builder.output import record
from netdiag.lab.scenario import bundled
from netdiag.protocols.conversation import Conversation
from netdiag.protocols.http2 import either as h2_either
from netdiag.protocols.http2.columns import regular as h2_regular
from netdiag.protocols.tls.direction import Direction
from netdiag.records.exchange_table import outcome_counts, slowest
from netdiag.stats.distribution import statistics
from tests.support.public_captures import folder, index, keylog_of
from tests.support.tools import needs_public_captures

CAPTURES = sorted((Path(__file__).parents[2] / "captures").glob("*.pcapng"))
BY_COLUMNS = {
    "built-h2-loss",
    "built-tls-retry",
    "clear-text-h2",
    "h2",
    "h2-several-streams",
    "h2-stream",
    "path-loss-in-stream",
}
"""The captures here with HTTP/2, all of them regular."""


class Ways:
    """How many connections went which way."""

    def __init__(self) -> None:
        self.taken = self.left = 0

    def decode(self, *sides: Any) -> Conversation | None:
        said = DECODE(*sides)
        self.taken += said is not None
        self.left += said is None
        return said


DECODE = h2_regular.decode


@contextmanager
def columns_for_all() -> Iterator[Ways]:
    """Also for connections with few requests."""
    ways = Ways()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(h2_either, "WORTH_BYTES", 0)
        patch.setattr(h2_either, "WORTH_REQUESTS", 0)
        patch.setattr(h2_regular, "decode", ways.decode)
        yield ways


@contextmanager
def one_by_one() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(h2_either, "WORTH_BYTES", 1 << 60)
        patch.setattr(Direction, "_straight_protection", lambda self: None)
        yield


def everything(path: Path, keylog: Path | None = None) -> tuple[Any, ...]:
    found = api.analyze(path, keylog=keylog, in_full=True)
    tables = (found.connections, found.resolutions, found.exchanges, found.anomalies)
    by_columns, by_records = statistics(found.exchanges), statistics(list(found.exchanges))
    assert plain(by_columns) == plain(by_records)
    assert outcome_counts(found.exchanges) == outcome_counts(list(found.exchanges))
    ranks = [e.id for e in slowest(found.exchanges, 7)]
    assert ranks == [e.id for e in slowest(list(found.exchanges), 7)]
    return (*(plain(list(table)) for table in tables), plain(by_columns), ranks)


def compare(path: Path, keylog: Path | None = None) -> Ways:
    with columns_for_all() as ways:
        by_columns = everything(path, keylog)
    with one_by_one():
        assert everything(path, keylog) == by_columns
    return ways


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_own_captures(path: Path) -> None:
    ways = compare(path)
    assert (ways.taken > 0, ways.left) == (path.stem in BY_COLUMNS, 0)


@pytest.mark.parametrize("name", ["early-hints", "goaway", "grpc-stream", "clean-h2-stream"])
def test_scenarios(name: str, tmp_path: Path) -> None:
    path = tmp_path / "made.pcapng"
    path.write_bytes(record(bundled(name)).capture)
    ways = compare(path)
    assert ways.taken + ways.left > 0


def test_what_is_known_of_them_can_be_sent_elsewhere_and_records_made_there(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Multiplexed] = []

    class Noted(Multiplexed):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(multiplexed, "Multiplexed", Noted)
    with columns_for_all():
        api.analyze(next(path for path in CAPTURES if path.stem == "h2-several-streams"), in_full=True)
    (here,) = made
    there = Multiplexed.__new__(Multiplexed)
    there.__dict__.update(pickle.loads(pickle.dumps(here.__dict__)))  # noqa: S301 (what was just written)
    assert len(there) > 1
    assert [there.draft(i).exchange(i) for i in range(len(there))] == [
        here.draft(i).exchange(i) for i in range(len(here))
    ]


@needs_public_captures
@pytest.mark.slow
def test_public_captures() -> None:
    taken = left = 0
    for name in index():
        try:
            ways = compare(folder() / name, keylog_of(name))
        except NetdiagError:
            continue
        taken, left = taken + ways.taken, left + ways.left
    assert taken >= 23
    assert taken > left
