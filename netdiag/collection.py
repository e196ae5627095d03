"""Python's cyclic garbage collector, kept from walking over a large result again and again while it grows."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

SELDOM = (500_000, 1_000, 1_000)


@contextmanager
def seldom() -> Iterator[None]:
    """Inside, cycles are looked for seldom: an analysis makes hundreds of thousands of records and hardly any cycle. (It costs a third of
    the time otherwise.)"""
    before = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def collect_young() -> None:
    """Cycles among what was made lately go at once, with all that they hold on to (the octets of a partition, for one)."""
    gc.collect(1)


def collect() -> None:
    """All cycles go at once."""
    gc.collect()


def keep_for_good() -> None:
    """Everything there is now lives until the process ends: it is not looked at again, not even then."""
    gc.freeze()
