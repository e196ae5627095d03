"""Packets of one pair of endpoints together."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.wire import by_pair as module
from netdiag.wire.by_pair import by_pair

KEYS = st.integers(0, 5) | st.integers(0, 2**64 - 1)


def columns(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    table = np.array(pairs, np.uint64).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].copy()


def assert_grouped(pairs: list[tuple[int, int]]) -> None:
    order, new = by_pair(*columns(pairs))
    assert sorted(order.tolist()) == list(range(len(pairs)))
    starts = [*np.flatnonzero(new).tolist(), len(pairs)]
    groups = [order[a:b].tolist() for a, b in pairwise(starts)]
    assert all(len({pairs[row] for row in group}) == 1 for group in groups)
    assert len(groups) == len(set(pairs)), "each pair in one place"
    assert all(group == sorted(group) for group in groups), "in file order"


@given(st.lists(st.tuples(KEYS, KEYS), max_size=60))
def test_each_pair_in_one_place_in_file_order(pairs: list[tuple[int, int]]) -> None:
    assert_grouped(pairs)


@given(st.lists(st.tuples(KEYS, KEYS), max_size=60))
def test_also_when_all_have_the_same_hash(pairs: list[tuple[int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MULTIPLIERS", (np.uint64(0), np.uint64(0)))
        assert_grouped(pairs)


@given(st.lists(st.tuples(KEYS, KEYS), max_size=60))
def test_also_when_only_one_end_is_hashed(pairs: list[tuple[int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MULTIPLIERS", (np.uint64(1 << 45), np.uint64(0)))
        assert_grouped(pairs)
