"""Columns kept in memory between reading and judging."""

from __future__ import annotations

import numpy as np

from netdiag.analysis.storage import InMemory, joined
from tests.support.conversation import Conversation


def packets(n: int):  # type: ignore[no-untyped-def]
    talk = Conversation().opens()
    for i in range(n):
        talk.client(bytes([65 + i]))
    return talk.wire().packets


def test_windows_are_one_partition_in_file_order() -> None:
    whole = packets(6)
    kept = InMemory()
    for part in (slice(0, 4), slice(4, 5), slice(5, None)):
        kept.add(whole.take(part), read=0.5)
    for _ in range(2):  # it can be asked again
        (load,) = kept.partitions()
        assert np.array_equal(load().packets.number, whole.number)
        assert load().buffer is None


def test_without_windows_there_is_an_empty_table() -> None:
    assert len(joined([])) == 0
    assert joined([]).seq.dtype == np.uint32
    (load,) = InMemory().partitions()
    assert len(load().packets) == 0


def test_one_window_is_not_copied() -> None:
    whole = packets(2)
    assert joined([whole]) is whole


def test_columns_come_back_as_they_were_put() -> None:
    kept = InMemory()
    columns = np.arange(5)
    assert np.array_equal(kept.put(columns)(), columns)
    assert kept.room(3, np.dtype(np.int32)).shape == (3,)
