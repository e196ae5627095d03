"""An analysis as tables, frames and a line."""

from __future__ import annotations

import pytest

from netdiag.records.analysis import Analysis
from tests.support.fabricated import analysis, exchange

ONE = analysis(exchange("dns 10 | tcp 20 | wait 30"), exchange("wait 40 | transfer 5"))


@pytest.mark.parametrize("table", Analysis.TABLES)
def test_rows_of_every_table_are_flat(table: str) -> None:
    for row in ONE.to_dicts(table):
        assert all(isinstance(value, str | int | float | bool | None) for value in row.values()), row


def test_nested_records_are_joined_by_dots() -> None:
    (row,) = ONE.to_dicts("connections")
    assert row["client.address"] == str(ONE.connections[0].client.address)
    assert row["sides.server.packets"] == ONE.connections[0].sides.server.packets


def test_there_is_a_row_for_each_phase_of_each_exchange() -> None:
    rows = ONE.to_dicts("phases")
    assert [(row["exchange_id"], row["name"]) for row in rows] == [
        (0, "dns"),
        (0, "tcp"),
        (0, "wait"),
        (1, "wait"),
        (1, "transfer"),
    ]


def test_an_unknown_table_names_those_there_are() -> None:
    with pytest.raises(KeyError, match="exchanges"):
        ONE.to_dicts("packets")


def test_in_one_line_and_as_html() -> None:
    assert "2 exchanges" in repr(ONE)
    assert repr(ONE).replace("<", "&lt;").replace(">", "&gt;") in ONE._repr_html_()
