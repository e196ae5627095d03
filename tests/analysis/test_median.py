"""The median, against the standard library's."""

from __future__ import annotations

import statistics

from hypothesis import given
from hypothesis import strategies as st

from netdiag.analysis.median import median


@given(st.lists(st.integers(-(10**18), 10**18) | st.floats(-1e9, 1e9), min_size=1))
def test_as_the_standard_librarys(values: list[float]) -> None:
    assert median(values) == statistics.median(values)
    assert median(iter(values)) == statistics.median(values)
