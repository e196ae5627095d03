"""What the capture backends share: another process takes the packets, says a few lines while it does, and counts when it stops."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod

from netdiag.capture.child import STOP_S, Child
from netdiag.capture.live import CaptureFailed, Counts
from netdiag.errors import PrivilegeMissing, ToolMissing, Unavailable

READY = "ready"


class ChildBackend(ABC):
    """A backend whose process is started by the subclass's ``start``."""

    subject = "the capture process"
    stop_s = STOP_S

    def __init__(self) -> None:
        self._child: Child | None = None
        self._counts = Counts()

    def stop(self) -> Counts:
        """See ``Backend.stop``."""
        child, self._child = self._child, None
        if child is not None:
            child.stop(self.stop_s)
            self._counts = self.counts(child.lines)
        return self._counts

    def trouble(self) -> str | None:
        """See ``Backend.trouble``."""
        if self._child is None or not self._child.ended():
            return None
        return f"{self.subject} has ended: {self.reason(self._child.lines)}"

    @abstractmethod
    def counts(self, lines: list[str]) -> Counts:
        """From all that the process said."""

    def reason(self, lines: list[str]) -> str:
        """Why it ended, in its own words."""
        return last_word(lines)

    def _begin(self, child: Child, start_s: float) -> None:
        """For a module of our own, which says in a line of JSON that it is ready. Raises the exception for one that is not."""
        self._child = child
        said = parsed(child.wait_for(lambda text: text.startswith("{"), start_s))
        if said.get("state") != READY:
            self.stop()
            raise failure(said, child.lines)


def failure(said: dict[str, object], lines: list[str]) -> Unavailable:
    """The exception for a process that did not become ready."""
    reason = str(said.get("reason") or last_word(lines))
    if said.get("state") == "forbidden":
        return PrivilegeMissing(reason)
    return ToolMissing(reason) if said.get("state") == "missing" else CaptureFailed(reason)


def conclusion(lines: list[str]) -> dict[str, object]:
    """What a module of our own said when it was done; empty when it did not."""
    return next((said for line in reversed(lines) if (said := parsed(line)).get("state") == "done"), {})


def parsed(line: str | None) -> dict[str, object]:
    """One line of JSON; empty for anything else."""
    try:
        value = json.loads(line or "")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def last_word(lines: list[str]) -> str:
    """The last line, or that there was none."""
    return lines[-1] if lines else "no word from the capture process"
