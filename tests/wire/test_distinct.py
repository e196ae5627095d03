"""Distinct values, against numpy's own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from netdiag.wire.distinct import by_appearance, distinct

columns = st.lists(st.integers(-3, 9), max_size=40)


@given(columns)
def test_each_value_once_in_order(values: list[int]) -> None:
    column = np.array(values, np.int32)
    assert distinct(column).tolist() == np.unique(column).tolist()
    assert distinct(column).dtype == column.dtype


@given(columns)
def test_each_value_once_as_they_come(values: list[int]) -> None:
    assert by_appearance(np.array(values, np.int64)) == list(dict.fromkeys(values))
