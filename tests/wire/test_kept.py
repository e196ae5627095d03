"""Values that an object keeps: computed once, when asked for, and of that object alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

from netdiag.wire.kept import kept, kept_by_argument


@dataclass(frozen=True)
class Square:
    side: int

    @kept
    def area(self) -> list[int]:
        """Squared."""
        return [self.side**2]


@kept_by_argument
def outline(square: Square) -> list[int]:
    """Four sides."""
    return [4 * square.side]


@kept_by_argument
def diagonal(square: Square) -> None:
    """Nobody knows, and that is kept too."""
    CALLS.append(square.side)


CALLS: list[int] = []


def test_a_kept_attribute_is_computed_once_even_on_a_frozen_object() -> None:
    square = Square(3)
    assert square.area == [9]
    assert square.area is square.area


def test_a_kept_attribute_shows_its_documentation_on_the_class() -> None:
    assert Square.area.__doc__ == "Squared."


def test_a_function_keeps_its_value_in_its_argument() -> None:
    one, other = Square(3), Square(5)
    assert outline(one) == [12]
    assert outline(one) is outline(one)
    assert outline(other) == [20]
    assert outline.__doc__ == "Four sides."


def test_functions_do_not_share_what_they_keep() -> None:
    square = Square(2)
    assert outline(square) == [8]
    assert square.area == [4]


def test_none_is_a_value_as_any_other() -> None:
    CALLS.clear()
    square = Square(7)
    assert [diagonal(square), diagonal(square)] == [None, None]
    assert CALLS == [7]


def test_a_changed_copy_computes_anew() -> None:
    square = Square(2)
    assert outline(square) == [8]
    assert outline(replace(square, side=10)) == [40]
