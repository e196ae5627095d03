"""Labels find room: beside their box, and in rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.plot.lane import Rows, Scale, beside
from netdiag.plot.style import TimeUnit

SCALE = Scale(0, TimeUnit(1_000_000_000), 1_000.0)


@pytest.mark.parametrize(
    ("left", "right", "side"),
    [(0.0, 900.0, "center"), (10.0, 20.0, "left"), (980.0, 990.0, "right")],
    ids=["inside a wide box", "right of a narrow one", "left of one at the end"],
)
def test_a_label_is_inside_or_where_there_is_room(left: float, right: float, side: str) -> None:
    assert beside(left, right, "ClientHello", SCALE)[1] == side


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 20)), max_size=30))
def test_nothing_in_a_row_overlaps(labels: list[tuple[float, float]]) -> None:
    rows, taken = Rows(), dict[int, float]()
    for begin, width in sorted(labels):
        row = rows.free(begin)
        assert taken.get(row, 0.0) <= begin
        rows.fill(row, begin + width)
        taken[row] = begin + width
    assert len(rows) == len(taken)
