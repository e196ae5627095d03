"""Holes and what fills them, against sets of octets."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from netdiag.wire import holes
from netdiag.wire.holes import Fills, find_holes
from netdiag.wire.sequence import SequenceSpace, running_edge
from netdiag.wire.tables import NONE

Range = tuple[int, int]


def fills_of(*directions: list[Range]) -> Fills:
    """What packets that carry these octets find, direction by direction."""
    ranges = [one for direction in directions for one in direction]
    starts = np.cumsum([0, *map(len, directions)])
    direction = np.repeat(np.arange(len(directions)), np.diff(starts))
    begin, end = (np.array([one[place] for one in ranges], np.int64) for place in (0, 1))
    space = SequenceSpace(
        begin=begin,
        end=end,
        edge=running_edge(end, direction, starts),
        acked=np.zeros(len(ranges), np.int64),
        occupies=np.ones(len(ranges), np.bool_),
        has_syn=np.ones(len(directions), np.bool_),
    )
    return find_holes(space, starts, direction)


@dataclass
class Octets:
    """The same one octet at a time."""

    edge: int = 0
    missing: dict[int, int] = field(default_factory=dict)
    """Octet to the number of its hole."""
    holes: list[Range] = field(default_factory=list)
    filled: dict[int, int] = field(default_factory=dict)
    new: dict[int, set[int]] = field(default_factory=dict)

    def take(self, row: int, begin: int, end: int) -> None:
        if begin > self.edge:
            self.missing.update(dict.fromkeys(range(self.edge, begin), len(self.holes)))
            self.holes.append((self.edge, begin))
        elif begin < self.edge:
            found = {octet: self.missing.pop(octet) for octet in range(begin, end) if octet in self.missing}
            for hole in set(found.values()) - set(self.missing.values()):
                self.filled[hole] = row
            if found:
                self.new[row] = set(found) | set(range(self.edge, end))
        self.edge = max(self.edge, end)


ranges = st.tuples(st.integers(0, 40), st.integers(1, 12)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.lists(ranges, max_size=25))
def test_as_one_octet_at_a_time(packets: list[Range]) -> None:
    expected = Octets()
    for row, (begin, end) in enumerate(packets):
        expected.take(row, begin, end)
    found = fills_of(packets)
    assert [(hole.begin, hole.end) for hole in found.holes] == expected.holes
    assert [hole.filled_row for hole in found.holes] == [expected.filled.get(i, NONE) for i in range(len(found.holes))]
    assert {row: {o for low, high in parts for o in range(low, high)} for row, parts in found.ranges.items()} == (
        expected.new
    )


@given(st.lists(ranges, max_size=25))
def test_ranges_are_ascending_and_do_not_touch(packets: list[Range]) -> None:
    for parts in fills_of(packets).ranges.values():
        assert all(low < high for low, high in parts)
        assert all(one[1] < other[0] for one, other in itertools.pairwise(parts))


def test_directions_do_not_fill_each_other() -> None:
    found = fills_of([(0, 5), (10, 15)], [(0, 5), (5, 10)], [(0, 5), (10, 15), (5, 10)])
    assert [(hole.direction, hole.after_row, hole.filled_row) for hole in found.holes] == [(0, 1, NONE), (2, 5, 6)]
    assert {row: hole.direction for row, hole in found.first_hole.items()} == {6: 2}


def test_open_holes_are_bounded(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(holes, "MAX_OPEN_HOLES", 3)
    opened = [(10 * i, 10 * i + 5) for i in range(1, 6)]
    found = fills_of([*opened, (15, 20), (0, 10)])
    assert len(found.holes) == 5
    assert found.ranges == {}  # the oldest holes are no longer watched
    assert fills_of([*opened, (45, 50)]).ranges == {5: [(45, 50)]}
