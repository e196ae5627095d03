"""A capture process of ours: it runs until its standard input ends, and talks to us in lines."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

STOP_S = 5.0
_LINE_LIMIT = 65_536


class Child:
    """Starts at once. ``stop`` (or our own end, whatever its kind) closes the pipe that keeps it alive."""

    def __init__(self, command: list[str], *, environment: dict[str, str] | None = None) -> None:
        """Raises ``OSError`` when the program cannot be started."""
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_clean_environment() if environment is None else environment,
            start_new_session=True,  # ^C in a terminal is for us; we stop the capture ourselves, after the drain
        )
        self.lines: list[str] = []
        """All that it has said."""
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="netdiag-capture-output", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Of the process that we started."""
        return self._process.pid

    def wait_for(self, wanted: Callable[[str], bool], timeout_s: float) -> str | None:
        """The first line that is wanted; None when the process ends or the time is over before it comes."""
        ends_s = time.monotonic() + timeout_s
        while (left_s := ends_s - time.monotonic()) > 0:
            try:
                line = self._queue.get(timeout=left_s)
            except queue.Empty:
                return None
            if line is None:
                return None
            if wanted(line):
                return line
        return None

    def ended(self) -> bool:
        """Whether the process has come to its end by itself."""
        return self._process.poll() is not None

    def stop(self, timeout_s: float = STOP_S) -> int | None:
        """End it, and wait. Its exit code; None when it had to be killed."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        code: int | None
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            code = None
            self._process.kill()
            self._process.wait()
        self._reader.join(timeout_s)
        if self._process.stdout is not None and not self._reader.is_alive():
            self._process.stdout.close()
        return code

    def _read(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            for raw in iter(lambda: self._process.stdout.readline(_LINE_LIMIT), b""):  # type: ignore[union-attr]
                line = raw.decode("utf-8", "replace").strip()
                self.lines.append(line)
                self._queue.put(line)
        self._queue.put(None)


def supervised(command: list[str], output: str) -> list[str]:
    """The command line that runs a foreign program under our supervisor, with its standard output going into a new file."""
    return [sys.executable, "-I", "-S", str(Path(__file__).with_name("supervisor.py")), output, *command]


def own_module(module: str, *arguments: str) -> list[str]:
    """The command line of a module of netdiag in a process of its own."""
    return [sys.executable, "-m", module, *arguments]


def _clean_environment() -> dict[str, str]:
    """Ours, without the key log (whose file would be written by whoever inherits it), and with the way to this package."""
    environment = {k: v for k, v in os.environ.items() if k != "SSLKEYLOGFILE"}
    home = str(Path(__file__).parents[2])
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (home, environment.get("PYTHONPATH"))))
    environment["LC_ALL"] = "C"
    return environment
