"""Work shared with forked processes."""

from __future__ import annotations

import os

import pytest

from netdiag.parallel import can_fork, map_forked

pytestmark = pytest.mark.skipif(not can_fork(), reason="this system cannot fork")


@pytest.mark.parametrize("jobs", [1, 2, 5, 100])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_results_come_in_order_whoever_made_them(jobs: int, count: int) -> None:
    assert map_forked(lambda thing: thing * thing, range(count), jobs) == [i * i for i in range(count)]


def test_the_work_is_really_shared_and_children_end() -> None:
    workers = map_forked(lambda _: os.getpid(), range(4), 2)
    assert workers[0] == workers[1] == os.getpid()
    assert workers[2] == workers[3] != os.getpid()
    with pytest.raises(ChildProcessError):
        os.waitpid(int(workers[3] or 0), os.WNOHANG)


def test_what_a_child_could_not_do_is_left_to_the_parent() -> None:
    parent = os.getpid()

    def fails_elsewhere(thing: int) -> int:
        if os.getpid() != parent:
            raise ValueError(thing)
        return thing

    assert map_forked(fails_elsewhere, range(4), 2) == [0, 1, None, None]


def test_a_child_that_dies_is_no_disaster() -> None:
    parent = os.getpid()

    def dies_elsewhere(thing: int) -> int:
        if os.getpid() != parent:
            os._exit(9)
        return thing

    assert map_forked(dies_elsewhere, range(3), 3) == [0, None, None]
