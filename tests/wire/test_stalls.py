"""Intervals in which a direction was held up: merged, so that their durations may be added."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from netdiag.wire.stalls import StallKind, Stalls

intervals = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(0, 15)).map(lambda i: (i[0], i[1], i[1] + i[2])),
    max_size=15,
).map(sorted)


def stalls_of(rows: list[tuple[int, int, int]]) -> Stalls:
    stream, begin, end = (np.array([row[place] for row in rows], np.int64) for place in range(3))
    return Stalls.of(
        connection=(stream // 2).astype(np.int32),
        direction=(stream % 2).astype(np.uint8),
        kind=StallKind.LOSS,
        started_at=begin,
        ended_at=end,
        first_packet=np.arange(len(rows)),
        last_packet=np.arange(len(rows)) + 100,
        stream=stream,
    )


@given(intervals)
def test_durations_of_a_direction_add_up_to_the_time_covered(rows: list[tuple[int, int, int]]) -> None:
    found = stalls_of(rows)
    for stream in range(4):
        mine = found.take((found.connection * 2 + found.direction) == stream)
        covered = {at for one, begin, end in rows if one == stream for at in range(begin, end)}
        assert int((mine.ended_at - mine.started_at).sum()) == len(covered)


@given(intervals)
def test_the_packets_are_those_that_began_and_ended_an_interval(rows: list[tuple[int, int, int]]) -> None:
    found = stalls_of(rows)
    for i in range(len(found)):
        assert rows[found.first_packet[i]][1] == found.started_at[i]
        assert rows[found.last_packet[i] - 100][2] == found.ended_at[i]


def test_none_is_an_empty_table() -> None:
    assert len(Stalls.none()) == 0
    assert len(Stalls.concat([Stalls.none(), stalls_of([(0, 1, 2)])])) == 1
