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
