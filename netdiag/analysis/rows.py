"""A table of records that are made when they are asked for, and then kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, overload

Row = TypeVar("Row")


class Rows(Sequence[Row]):
    """``count`` records; number ``i`` is ``make(i)``, called once at most."""

    __slots__ = ("_count", "_made", "_make", "near")

    def __init__(self, count: int, make: Callable[[int], Row], near: Callable[[int], int] | None = None) -> None:
        self._make = make
        self.near = near
        """Ranks the rows by where they come from: rows of like rank are cheaper one after the other."""
        self._count = count
        self._made: dict[int, Row] = {}

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Row]: ...
    def __getitem__(self, place: int | slice) -> Row | Sequence[Row]:
        if isinstance(place, slice):
            return tuple(self.those(range(*place.indices(len(self)))))
        number = place if place >= 0 else self._count + place
        if not 0 <= number < self._count:
            raise IndexError(f"row {place} of {self._count}")
        row = self._made.get(number)
        if row is None:
            row = self._made[number] = self._make(number)
        return row

    def those(self, places: Sequence[int]) -> list[Row]:
        """The rows at these places, made in the order in which that costs least."""
        if self.near is not None:
            for place in sorted(places, key=self.near):
                self[place]
        return [self[place] for place in places]

    def keep(self, place: int, row: Row) -> None:
        """A row that was made elsewhere already."""
        self._made.setdefault(place, row)

    def put(self, place: int, row: Row) -> None:
        """Another row than the one that would be made."""
        self._made[place] = row

    def __iter__(self) -> Iterator[Row]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sequence)
            and len(self) == len(other)
            and all(a == b for a, b in zip(self, other, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} rows>"
