"""Classes of records that stay inside."""

from __future__ import annotations

from dataclasses import field, fields, replace

from netdiag.plain import plain


@plain(frozen=True, slots=True, kw_only=True)
class Columns:
    """Two columns."""

    at: list[int]
    size: list[int] = field(default_factory=list)


def test_they_are_dataclasses_without_what_nobody_calls() -> None:
    table = Columns(at=[1])
    assert [f.name for f in fields(table)] == ["at", "size"]
    assert (replace(table, size=[2]).at, table.size) == ([1], [])
    assert not hasattr(table, "__dict__")
    assert not {"__eq__", "__repr__", "__setattr__", "__hash__"} & set(vars(Columns))


def test_each_is_only_itself() -> None:
    one, other = Columns(at=[1]), Columns(at=[1])
    assert one == one
    assert one != other
    assert len({one, other}) == 2
