"""A progress bar on standard error: only on a terminal, only for work that takes longer than a second, by octets."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol, Self

from netdiag.sanitise import one_line

PATIENCE_S = 1.0
"""Nothing is shown before."""


class Report(Protocol):
    """What long work calls now and then."""

    def __call__(self, done_bytes: int, total_bytes: int | None) -> None: ...


@contextmanager
def progress(label: str, *, quiet: bool = False) -> Iterator[Report]:
    """A function to report octets to; with ``quiet`` or without a terminal it does nothing."""
    if quiet or not sys.stderr.isatty():
        yield lambda done_bytes, total_bytes: None
        return
    with _Bar(one_line(label, most=40)) as bar:
        yield bar


class _Bar:
    def __init__(self, label: str) -> None:
        self._label = label
        self._began = time.monotonic()
        self._shown: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        return self

    def __call__(self, done_bytes: int, total_bytes: int | None) -> None:
        if self._shown is None:
            if time.monotonic() - self._began < PATIENCE_S:
                return
            self._begin()
        self._shown.update(self._task, completed=done_bytes, total=total_bytes)

    def _begin(self) -> None:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        from netdiag.cli.console import console

        columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        self._shown = Progress(*columns, console=console(sys.stderr), transient=True)
        self._task = self._shown.add_task(self._label, total=None)
        self._shown.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown is not None:
            self._shown.stop()
