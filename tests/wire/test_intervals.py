"""Intervals merged, against the plain words of what a union is."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from netdiag.wire.intervals import union

INTERVALS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 10)), max_size=20)


@given(INTERVALS)
def test_the_union_covers_the_same_instants_and_its_intervals_do_not_touch(rows: list[tuple[int, int, int]]) -> None:
    stream, begin, length = np.array(rows, np.int64).reshape(-1, 3).T
    end = begin + length
    merged = [(int(stream[a]), int(begin[a]), int(end[b]), n) for a, b, n in union(stream, begin, end).tolist()]
    covered = {(s, 2 * t) for s, b, e, _ in merged for t in range(b, e + 1)}
    assert covered == {(s, 2 * t) for s, b, size in rows for t in range(b, b + size + 1)}
    assert sum(n for *_, n in merged) == len(rows)
    for (s1, _, e1, _), (s2, b2, _, _) in itertools.pairwise(merged):
        assert s1 < s2 or e1 < b2


def test_touching_intervals_are_one() -> None:
    assert union(np.zeros(2, np.int64), np.array([0, 5]), np.array([5, 9])).tolist() == [[0, 1, 2]]
