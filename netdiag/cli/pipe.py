"""A pipe as a capture file: it ends where its writer ends, or soon after ^C, so that ``tcpdump -w - | netdiag analyze -`` tells what came."""

from __future__ import annotations

import io
import os
import select
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from netdiag.cli.progress import Report

STANDARD_INPUT = "-"
GRACE_S = 1.5
"""After ^C: the writer in the same pipeline has got it too, and flushes what it has."""
_LOOK_S = 0.2
_STEP_BYTES = 1 << 20


@contextmanager
def opened(path: str, report: Report) -> Iterator[str | BinaryIO]:
    """What to read instead of ``path``: a pipe (standard input, FIFO) with patience, anything else as it is."""
    if path == STANDARD_INPUT:
        descriptor = _piped_input()
        if descriptor is not None:
            with _patient(descriptor, report) as pipe:
                yield pipe
            return
    elif os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode):
        with open(path, "rb", buffering=0) as file, _patient(file.fileno(), report) as pipe:
            yield pipe
        return
    yield path


def _piped_input() -> int | None:
    """Standard input, unless it is a regular file (which can be mapped) or no file at all."""
    try:
        descriptor = sys.stdin.fileno()
        return None if stat.S_ISREG(os.fstat(descriptor).st_mode) else descriptor
    except (OSError, ValueError):
        return None


@contextmanager
def _patient(descriptor: int, report: Report) -> Iterator[BinaryIO]:
    """While it is read, the first ^C only ends the reading; signals are left alone outside the main thread, where Python takes none."""
    pipe = _Pipe(descriptor, report)
    if threading.current_thread() is not threading.main_thread():
        yield cast("BinaryIO", pipe)
        return
    before = signal.signal(signal.SIGINT, pipe.interrupt)
    pipe.restore = lambda: signal.signal(signal.SIGINT, before)
    try:
        yield cast("BinaryIO", pipe)
    finally:
        pipe.restore()


class _Pipe:
    """As much of a binary file as the readers of captures ask for."""

    def __init__(self, descriptor: int, report: Report) -> None:
        self._descriptor = descriptor
        self._report = report
        self._done = 0
        self._ends_at_s: float | None = None
        self._ended = False
        self.restore: Any = lambda: None

    def interrupt(self, number: int, frame: Any) -> None:
        """^C: at the second one everything ends at once."""
        if self._ends_at_s is not None:
            raise KeyboardInterrupt
        self._ends_at_s = time.monotonic() + GRACE_S

    def fileno(self) -> int:
        """None to give: reading beside this would not know of the end."""
        raise io.UnsupportedOperation("a pipe is read through this alone")

    def read(self, size: int) -> bytes:
        """At most so many octets, as soon as there are any; none at the end."""
        if self._ended:
            return b""
        while not select.select([self._descriptor], [], [], _LOOK_S)[0]:
            self._report(self._done, None)
            if self._is_over():
                return self._end(b"")
        octets = os.read(self._descriptor, size)
        self._done += len(octets)
        self._report(self._done, None)
        return octets if octets and not self._is_over() else self._end(octets)

    def read1(self, size: int = _STEP_BYTES) -> bytes:
        """The same."""
        return self.read(size)

    def _is_over(self) -> bool:
        return self._ends_at_s is not None and time.monotonic() > self._ends_at_s

    def _end(self, octets: bytes) -> bytes:
        """No more is read: from here on ^C means what it always means. So does the first one, where nothing came even after it."""
        self.restore()
        self._ended = True
        if self._ends_at_s is not None and not self._done:
            raise KeyboardInterrupt
        if self._is_over():
            from netdiag.cli.console import note

            note("stopped reading at ^C; what writes to it goes on")
        return octets
