"""Rows by session: against the plain words of what each function says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from netdiag.analysis.keyless.rows import first_per_session, groups, last_before, values_at
from netdiag.wire.tables import NONE

MOMENTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=20)


@given(MOMENTS.map(sorted), MOMENTS)
def test_last_before_is_the_last_row_of_that_session_that_is_no_later(
    rows: list[tuple[int, int]], wanted: list[tuple[int, int]]
) -> None:
    session, at = np.array(rows, np.int64).reshape(-1, 2).T
    wanted_session, wanted_at = np.array(wanted, np.int64).reshape(-1, 2).T
    expected = [
        max((i for i, (s, t) in enumerate(rows) if s == session_wanted and t <= moment), default=NONE)
        for session_wanted, moment in wanted
    ]
    if rows:
        assert last_before(session, at, wanted_session, wanted_at).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans())))
def test_first_per_session_is_the_lowest_row_for_which_the_mask_holds(rows: list[tuple[int, bool]]) -> None:
    session, mask = np.array([s for s, _ in rows], np.int64), np.array([m for _, m in rows], bool)
    expected = [min((i for i, (s, m) in enumerate(rows) if m and s == one), default=NONE) for one in range(5)]
    assert first_per_session(mask, session, 5).tolist() == expected


def test_groups_are_runs_of_equal_keys() -> None:
    starts, group = groups(np.array([3, 3, 5, 3]))
    assert (starts.tolist(), group.tolist()) == ([0, 2, 3], [0, 0, 1, 2])


def test_a_value_at_no_row_is_none() -> None:
    assert values_at(np.array([7, 8]), np.array([1, NONE])).tolist() == [8, NONE]
    assert values_at(np.empty(0, np.int64), np.array([NONE])).tolist() == [NONE]
