"""Values kept with their object."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from netdiag.parallel import map_threaded
from netdiag.wire.kept import kept


@dataclass(frozen=True)
class Square:
    """Counts how often its area is computed."""

    side: int
    computed: list[int]

    @kept
    def area(self) -> int:
        """Of the square."""
        self.computed.append(self.side)
        return self.side**2


def test_it_is_computed_once_for_each_object() -> None:
    computed: list[int] = []
    three, four = Square(3, computed), Square(4, computed)
    assert [three.area, four.area, three.area, four.area] == [9, 16, 9, 16]
    assert computed == [3, 4]
    assert Square.area.__doc__ == "Of the square."


def test_objects_do_not_wait_for_each_other() -> None:
    together = threading.Barrier(2, timeout=10)

    class Meeting:
        @kept
        def place(self) -> int:
            return together.wait()

    assert sorted(map_threaded(lambda meeting: meeting.place, [Meeting(), Meeting()], 2)) == [0, 1]
