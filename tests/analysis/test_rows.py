import pytest

from netdiag.analysis.rows import Rows


def test_rows_are_made_once_and_only_when_asked_for() -> None:
    made: list[int] = []

    def make(i: int) -> str:
        made.append(i)
        return f"row {i}"

    rows = Rows(4, make)
    assert (len(rows), made) == (4, [])
    assert (rows[2], rows[-1], rows[2]) == ("row 2", "row 3", "row 2")
    assert made == [2, 3]
    assert list(rows[:2]) == ["row 0", "row 1"]
    assert rows == ["row 0", "row 1", "row 2", "row 3"]
    assert made == [2, 3, 0, 1]
    with pytest.raises(IndexError):
        rows[4]


def test_several_are_made_in_the_order_that_costs_least_and_come_in_the_order_asked_for() -> None:
    made: list[int] = []
    rows = Rows(6, lambda i: made.append(i) or f"row {i}", near=lambda i: i % 2)  # type: ignore[func-returns-value]
    assert rows.those([5, 2, 3, 0]) == ["row 5", "row 2", "row 3", "row 0"]
    assert made == [2, 0, 5, 3]
    assert rows[:6] == tuple(f"row {i}" for i in range(6))
    assert made == [2, 0, 5, 3, 4, 1]


def test_what_was_made_elsewhere_is_not_made_again() -> None:
    rows = Rows(2, lambda i: f"made {i}")
    rows.keep(0, "brought")
    rows.keep(0, "brought again")
    assert list(rows) == ["brought", "made 1"]
