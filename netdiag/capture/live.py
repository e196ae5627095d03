"""Capture while something happens: start, prove that it is live, and stop only when the last packet is in the file.

Read ``LiveCapture`` first. The backends differ in how they record (``Backend``); that a capture is live and complete is proved the same way
for all of them, by markers (``marker.py``).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from netdiag.capture.filter import CaptureFilter
from netdiag.capture.marker import Beacon, Watcher, new_token
from netdiag.errors import Unavailable

LIVE_S = 5.0
"""Longest wait for the first marker. dumpcap shows it after its ring block retires, 250 ms."""
DRAIN_S = 1.5
_LOOK_S = 0.005
_FIRST_REPEAT_S = 0.1
"""A marker is repeated in case the first ones came too early; the time between doubles, to keep the file free of clutter."""


class CaptureFailed(Unavailable):
    """A capture could not be started, or did not see our own packets."""

    code = "capture-failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a backend is to do."""

    path: str
    """The pcapng file to write; does not exist yet."""
    interfaces: tuple[str, ...]
    filter: CaptureFilter
    buffer_bytes: int = 64 << 20
    """Kernel buffer per interface, as far as the system allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What the backend says at the end. None: it does not say."""

    received: int | None = None
    dropped: int | None = None
    note: str | None = None
    """One line: what the user should know about this recording (``pyshark fell behind …``)."""


class Backend(Protocol):
    """Something that records packets into a pcapng file, in a process of its own."""

    name: str

    def start(self, task: Task) -> None:
        """Begin to record; returns when the recorder says that it runs.

        Raises ``ToolMissing``, ``PrivilegeMissing`` or ``CaptureFailed``, with nothing left running.
        """

    def stop(self) -> Counts:
        """End, and wait for the end; the file is complete then. Harmless when repeated or never started."""

    def trouble(self) -> str | None:
        """Why it has ended by itself; None while it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """A finished capture."""

    path: str
    backend: str
    interfaces: tuple[str, ...]
    counts: Counts
    proved_live_at_s: float
    """Monotonic seconds from the start to the first marker seen."""
    complete: bool
    """Whether the last markers were seen too: then everything before them is in the file."""
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class LiveCapture:
    """A running capture. Use as a context manager: whatever ends the block ends the recorder."""

    backend: Backend
    task: Task
    beacons: Sequence[Beacon]
    _watcher: Watcher = field(init=False)
    _ready_s: float = field(init=False, default=0.0)
    _finished: Captured | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._watcher = Watcher(self.task.path)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.abort()

    def start(self) -> None:
        """Start the recorder and wait until it has seen a packet of ours on every interface.

        Raises what ``Backend.start`` raises, or ``CaptureFailed`` when no marker was seen; nothing is left of the file then, so that
        another backend can be tried.
        """
        began_s = time.monotonic()
        new = not os.path.lexists(self.task.path)
        try:
            self.backend.start(self.task)
            missing = self._prove(LIVE_S)
            if missing:
                raise CaptureFailed(
                    self.backend.trouble()
                    or f"{self.backend.name} runs, but does not see our packets on {', '.join(missing)}"
                )
        except BaseException:
            self.abort()
            if new:
                with contextlib.suppress(OSError):
                    os.unlink(self.task.path)
            raise
        self._ready_s = time.monotonic() - began_s

    def finish(self, *, linger_s: float = 0.0) -> Captured:
        """Wait ``linger_s`` for late packets (a server's FIN), drain, stop. Repeated calls return the same."""
        if self._finished is None:
            time.sleep(linger_s)
            self._watcher.skip_to_end()
            missing = self._prove(DRAIN_S)
            trouble = self.backend.trouble()
            counts = self.backend.stop()
            self._close_beacons()
            self._finished = Captured(
                path=self.task.path,
                backend=self.backend.name,
                interfaces=self.task.interfaces,
                counts=counts,
                proved_live_at_s=self._ready_s,
                complete=not missing and trouble is None,
                notes=tuple(filter(None, (trouble, counts.note, _incomplete(missing)))),
            )
        return self._finished

    def abort(self) -> None:
        """End the recorder without any wait for packets."""
        with contextlib.suppress(OSError):
            self.backend.stop()
        self._close_beacons()

    def _close_beacons(self) -> None:
        for beacon in self.beacons:
            beacon.close()

    def _prove(self, timeout_s: float) -> list[str]:
        """Send markers until each interface's has been seen. The interfaces whose has not."""
        tokens = {new_token(): beacon for beacon in self.beacons}
        ends_s = time.monotonic() + timeout_s
        next_send_s, repeat_s = 0.0, _FIRST_REPEAT_S
        while tokens and (now_s := time.monotonic()) < ends_s and self.backend.trouble() is None:
            if now_s >= next_send_s:
                _send(tokens)
                next_send_s, repeat_s = now_s + repeat_s, 2 * repeat_s
            time.sleep(_LOOK_S)
            for token in self._watcher.seen(set(tokens)):
                del tokens[token]
        return [beacon.interface for beacon in tokens.values()]


@contextlib.contextmanager
def capture_ends(capture: LiveCapture) -> Iterator[None]:
    """Whatever happens in the block, the recorder of an already running capture is ended."""
    try:
        yield
    finally:
        capture.abort()


def _send(tokens: dict[bytes, Beacon]) -> None:
    for token, beacon in tokens.items():
        beacon.send(token)


def _incomplete(missing: list[str]) -> str | None:
    if not missing:
        return None
    return f"the capture on {', '.join(missing)} may lack its last packets: our closing marker was not seen"
