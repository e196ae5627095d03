"""Work shared by threads."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from netdiag.parallel import default_jobs, map_threaded


@pytest.mark.parametrize("jobs", [1, 2, 5, 100])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 300])
def test_results_come_in_order_whoever_made_them(jobs: int, count: int) -> None:
    assert list(map_threaded(lambda thing: thing * thing, range(count), jobs)) == [i * i for i in range(count)]


def test_the_work_is_really_shared() -> None:
    together = threading.Barrier(2, timeout=10)
    assert len(list(map_threaded(lambda _: together.wait(), range(6), 2))) == 6


def test_things_are_taken_only_a_few_ahead() -> None:
    taken: list[int] = []

    def things() -> Iterator[int]:
        for i in range(100):
            taken.append(i)
            yield i

    results = map_threaded(lambda thing: thing, things(), 3)
    assert next(results) == 0
    assert len(taken) <= 5
    results.close()


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_failure_is_told_and_ends_the_work(jobs: int) -> None:
    def fails(thing: int) -> int:
        return 12 // (3 - thing)

    found = []
    with pytest.raises(ZeroDivisionError):
        found.extend(map_threaded(fails, range(1000), jobs))
    assert found == [4, 6, 12]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("netdiag")]


def test_the_switch_interval_is_as_it_was() -> None:
    before = sys.getswitchinterval()
    assert min(map_threaded(lambda _: sys.getswitchinterval(), range(2), 2)) < before
    assert sys.getswitchinterval() == before


def test_there_is_always_one() -> None:
    assert 1 <= default_jobs() <= 4
