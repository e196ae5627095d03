"""Tables as data frames: whole numbers stay whole, unknown stays unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netdiag.records.analysis import Analysis
from tests.support import analyses
from tests.support.fabricated import analysis, connection

pytest.importorskip("pandas")
pytest.importorskip("polars")

SYN_AT = 1_796_041_994_065_148_753
"""No double is that number: a float column would say 1796041994065148672."""


def half_known() -> Analysis:
    known, unknown = connection(), replace(connection(id=1), syn_at=None, complete=False, tls=None)
    return analysis(connections=(replace(known, syn_at=SYN_AT), unknown))


def test_instants_are_exact_where_others_are_unknown() -> None:
    frame = half_known().to_pandas("connections")
    assert str(frame["syn_at"].dtype) == "Int64"
    assert int(frame["syn_at"][0]) == SYN_AT
    assert frame["syn_at"].isna().tolist() == [False, True]
    assert half_known().to_polars("connections")["syn_at"].to_list() == [SYN_AT, None]


def test_nested_records_that_are_not_there_leave_unknowns() -> None:
    frame = half_known().to_pandas("connections")
    assert frame["tls.version"].notna().tolist() == [True, False]
    assert frame["complete"].tolist() == [True, False]


@pytest.mark.parametrize(
    "make", [analyses.reused, analyses.streamed, analyses.keyless, analyses.failures, analyses.retried]
)
def test_both_kinds_of_frame_say_the_same(make: object) -> None:
    whole: Analysis = make()  # type: ignore[operator]
    for table in Analysis.TABLES:
        pandas, polars = whole.to_pandas(table), whole.to_polars(table)
        assert list(pandas.columns) == polars.columns
        for name in polars.columns:
            ours = [
                None if missing else value for value, missing in zip(pandas[name], pandas[name].isna(), strict=True)
            ]
            assert ours == polars[name].to_list(), (table, name)


def test_a_table_without_rows_is_an_empty_frame() -> None:
    assert analysis().to_pandas("calls").shape == (0, 0)
