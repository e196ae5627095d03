"""^C while requests are made: the first ends the run with a report, the second ends everything."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

ENDING = "ending after the request in flight; ^C again ends at once"


def _say() -> None:
    from netdiag.cli.console import note

    if sys.stderr.isatty():
        click.echo(err=True)  # the cursor is behind the terminal's own ^C
    note(ENDING)


@contextmanager
def interruptible(stop: threading.Event, say: Callable[[], None] = _say) -> Iterator[None]:
    """The first ^C sets ``stop`` and lets ``say`` tell what will happen; the second raises ``KeyboardInterrupt``. In another than the main
    thread, which gets no signals, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        say()

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
