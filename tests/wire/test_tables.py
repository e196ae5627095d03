"""Rows of tables of columns: chosen and put together."""

from __future__ import annotations

import numpy as np
import pytest

from netdiag.plain import plain
from netdiag.wire.tables import Int64, Table


@plain(frozen=True, slots=True, kw_only=True)
class Pairs(Table):
    number: Int64
    square: Int64


def pairs(*numbers: int) -> Pairs:
    column = np.array(numbers, np.int64)
    return Pairs(number=column, square=column**2)


@pytest.mark.parametrize("rows", [np.array([2, 0]), np.array([True, False, True]), slice(1, 3)])
def test_taking_rows_takes_them_from_every_column(rows: object) -> None:
    taken = pairs(1, 2, 3).take(rows)
    assert isinstance(taken, Pairs)
    assert taken.number.tolist() == np.array([1, 2, 3])[rows].tolist()  # type: ignore[index]
    assert (taken.square == taken.number**2).all()


def test_a_slice_copies_nothing() -> None:
    table = pairs(1, 2, 3)
    assert np.shares_memory(table.take(slice(0, 2)).number, table.number)


def test_tables_are_put_together_in_order() -> None:
    whole = Pairs.concat([pairs(3, 1), pairs(), pairs(2)])
    assert (len(whole), whole.number.tolist(), whole.square.tolist()) == (3, [3, 1, 2], [9, 1, 4])
