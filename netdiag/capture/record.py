"""Record packets to a file, or to a ring of files, until told to stop: by time, by size, or from outside. Files are complete whatever ends it."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from netdiag.capture.choose import live_capture, start_first, wide_capture
from netdiag.capture.live import Captured, LiveCapture
from netdiag.errors import OutputError, UsageError

_LOOK_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordConfig:
    """What to record, and when to stop. ``UsageError`` for what cannot be."""

    path: str
    """The file; of a ring, ``NAME.pcapng`` becomes ``NAME_00001.pcapng`` and so on."""
    backend: str = "auto"
    interface: str | None = None
    hosts: tuple[str, ...] = ()
    """Addresses to narrow to; empty for any."""
    ports: tuple[int, ...] = ()
    """Empty: all TCP, QUIC and DNS."""
    seconds: float | None = None
    megabytes: float | None = None
    """Of all files together (without a ring), stop there."""
    ring_files: int | None = None
    """Keep only the last so many files."""
    ring_megabytes: float = 64.0
    """Size of each file of a ring."""

    def __post_init__(self) -> None:
        if self.ring_files is not None and self.ring_files < 2:
            raise UsageError("a ring needs at least 2 files")
        limits = [limit for limit in (self.seconds, self.megabytes, self.ring_megabytes) if limit is not None]
        if min(limits) <= 0:
            raise UsageError("a limit must be above 0")
        if self.backend == "none":
            raise UsageError("capture backend 'none' cannot record")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What was recorded."""

    paths: tuple[str, ...]
    """The files that are there, oldest first."""
    captured: tuple[Captured, ...]
    """Of each file."""
    ended_by: str
    """``stop``, ``seconds``, ``megabytes``, or the recorder's own trouble in words."""

    @property
    def dropped(self) -> int | None:
        """The kernel's drops over all files; None when any is not known."""
        counts = [one.counts.dropped for one in self.captured]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None


Progress = Callable[[float, int], None]
"""Called with (seconds, octets so far)."""


def record(config: RecordConfig, *, stop: threading.Event, progress: Progress | None = None) -> Recorded:
    """Record until ``stop`` is set or a limit is reached. ^C (``KeyboardInterrupt``) ends it as ``stop`` does.

    Raises ``OutputError`` when a file is there already, and what starting a capture raises.
    """
    return _Recording(config, stop, progress).run()


class _Recording:
    def __init__(self, config: RecordConfig, stop: threading.Event, progress: Progress | None) -> None:
        self._config = config
        self._stop = stop
        self._progress = progress
        self._finished: list[Captured] = []
        self._number = 0
        self._earlier_octets = 0

    def run(self) -> Recorded:
        running = self._start()
        ended_by = "stop"
        try:
            ended_by, running = self._watch(running)
        except KeyboardInterrupt:
            pass
        except BaseException:
            running.abort()
            raise
        self._finished.append(running.finish())
        return Recorded(
            paths=tuple(one.path for one in self._finished), captured=tuple(self._finished), ended_by=ended_by
        )

    def _watch(self, running: LiveCapture) -> tuple[str, LiveCapture]:
        began_s = time.monotonic()
        while not self._stop.wait(_LOOK_S):
            octets, seconds = _size(running.task.path), time.monotonic() - began_s
            if self._progress is not None:
                self._progress(seconds, self._earlier_octets + octets)
            if (trouble := running.backend.trouble()) is not None:
                return trouble, running
            if self._config.seconds is not None and seconds >= self._config.seconds:
                return "seconds", running
            if self._config.megabytes is not None and self._earlier_octets + octets >= self._config.megabytes * 1e6:
                return "megabytes", running
            if self._config.ring_files is not None and octets >= self._config.ring_megabytes * 1e6:
                running = self._next(running)
        return "stop", running

    def _next(self, running: LiveCapture) -> LiveCapture:
        """The next file begins before this one ends, so a few packets are in both, and none in neither."""
        following = self._start()
        done = running.finish()
        self._earlier_octets += _size(done.path)
        self._finished.append(done)
        assert self._config.ring_files is not None
        while len(self._finished) >= self._config.ring_files:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._finished.pop(0).path)
        return following

    def _start(self) -> LiveCapture:
        self._number += 1
        path = self._path()
        if os.path.lexists(path):
            raise OutputError("exists already", path=path, advice="Give another name.")
        _check_folder(path)
        return start_first(self._config.backend, lambda name: self._prepare(name, path))

    def _prepare(self, name: str, path: str) -> LiveCapture:
        config = self._config
        if not config.ports:
            return wide_capture(name=name, path=path, interface=config.interface)
        return live_capture(
            name=name, path=path, ports=set(config.ports), hosts=config.hosts, interface=config.interface
        )

    def _path(self) -> str:
        if self._config.ring_files is None:
            return self._config.path
        path = Path(self._config.path)
        return str(path.with_name(f"{path.stem}_{self._number:05d}{path.suffix}"))


def _check_folder(path: str) -> None:
    """Said here: a recorder would call it a missing right to capture. Raises ``OutputError``."""
    folder = os.path.dirname(path) or os.curdir
    if not os.path.isdir(folder):
        raise OutputError("the folder does not exist", path=path)
    if not os.access(folder, os.W_OK):
        raise OutputError("cannot be written: Permission denied", path=path)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
