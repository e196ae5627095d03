"""Several ``-o`` of one run: what can be written is written, and the picture is of a call that counts."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from unittest import mock

import pytest

from netdiag import plot
from netdiag.cli import outputs, results
from netdiag.errors import UsageError
from netdiag.records.statistics import Exclusion, Statistics
from tests.support import analyses


def test_a_picture_that_cannot_be_drawn_does_not_cost_the_result(tmp_path: Path) -> None:
    picture, document = str(tmp_path / "a.png"), tmp_path / "run.json"
    with pytest.raises(UsageError, match="no answer was a stream of events"):
        results.write_files(analyses.one_request(), [picture, str(document)], drawing="arrival")
    assert json.loads(document.read_text())["schema"] == "netdiag/analysis"
    assert not Path(picture).exists()


def test_documents_and_captures_come_before_pictures_in_the_order_given() -> None:
    given = ["b.svg", "run.json", "a.png", "run.pcapng"]
    assert outputs.pictures_last(given) == ["run.json", "run.pcapng", "b.svg", "a.png"]


@pytest.mark.parametrize(("uncounted", "drawn"), [((), 0), ((0,), 1), ((0, 1), 0)])
def test_the_arrival_picture_is_of_the_first_stream_that_counts(uncounted: tuple[int, ...], drawn: int) -> None:
    streamed = analyses.streamed().exchanges[0]
    excluded = tuple(Exclusion(exchange_id=id, reason="first round") for id in uncounted)
    arm = Statistics(arm="h2", n=2 - len(excluded), excluded=excluded, phases={}, outcomes={"ok": 2})
    both = dataclasses.replace(
        analyses.streamed(), exchanges=(streamed, dataclasses.replace(streamed, id=1)), statistics=(arm,)
    )
    with mock.patch.object(plot, "arrival", wraps=plot.arrival) as drawing, mock.patch.object(plot, "save"):
        outputs.write(both, outputs.Wanted(path="a.png", ending=".png", drawing="arrival"))
    assert drawing.call_args.args[1] == drawn
