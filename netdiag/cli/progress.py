"""A progress bar on standard error: only on a terminal, only for work that takes longer than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from netdiag.sanitise import one_line

PATIENCE_S = 1.0
"""Nothing is shown before."""


class Report(Protocol):
    """What long work calls now and then: how much is done, of how much (None when that is not known)."""

    def __call__(self, done: int, total: int | None, /) -> None:
        """``done`` of ``total``, in the unit of the work."""
        ...


@contextmanager
def progress(label: str, *, unit: str = "bytes", quiet: bool = False) -> Iterator[Report]:
    """A function to report to; ``unit`` is ``bytes`` or a word for what is counted. With ``quiet`` or without a terminal it does nothing."""
    if quiet or not sys.stderr.isatty():
        yield _nothing
        return
    bar = _Bar(one_line(label, most=40), unit)
    try:
        yield bar
    finally:
        bar.stop()


def _nothing(done: int, total: int | None, /) -> None:
    return


class _Bar:
    def __init__(self, label: str, unit: str) -> None:
        self._label = label
        self._unit = unit
        self._began = time.monotonic()
        self._shown: Any = None
        self._task: Any = None

    def __call__(self, done: int, total: int | None, /) -> None:
        if self._shown is None:
            if time.monotonic() - self._began < PATIENCE_S:
                return
            self._begin()
        self._shown.update(self._task, completed=done, total=total)

    def stop(self) -> None:
        """Take the bar away; nothing of it stays on the screen."""
        if self._shown is not None:
            self._shown.stop()

    def _begin(self) -> None:
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        from netdiag.cli.console import console

        amount = DownloadColumn() if self._unit == "bytes" else MofNCompleteColumn()
        name = TextColumn("{task.description}", markup=False)
        unit = TextColumn("" if self._unit == "bytes" else self._unit, markup=False)
        columns = (name, BarColumn(), amount, unit, TimeRemainingColumn())
        self._shown = Progress(*columns, console=console(sys.stderr), transient=True)
        self._task = self._shown.add_task(self._label, total=None)
        self._shown.start()
