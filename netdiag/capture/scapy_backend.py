"""scapy's listening socket in a process of its own, read raw: no external program, the default where dumpcap is absent.

scapy's own sniffer dissects each packet (2,000 to 4,000 a second) and loses what it cannot keep up with without a word. So only its socket
is used: our filter is attached to it, its buffer is made large, and octets go to the file undissected, with the kernel's nanosecond stamps.
"""

from __future__ import annotations

import json
import sys

from netdiag.capture.child import Child, own_module
from netdiag.capture.live import CaptureFailed, Counts, Task
from netdiag.capture.route import is_loopback
from netdiag.errors import PrivilegeMissing, ToolMissing, Unavailable

START_S = 15.0
"""Includes the import of scapy on a slow machine."""
_READY = "ready"


class ScapyBackend:
    """Starts ``netdiag.capture.scapy_child`` and reads its few lines of JSON."""

    name = "scapy"

    def __init__(self) -> None:
        self._child: Child | None = None
        self._counts = Counts()

    def start(self, task: Task) -> None:
        """See ``Backend.start``."""
        if sys.platform != "linux":
            raise ToolMissing("the scapy backend needs Linux packet sockets", advice="use --capture dumpcap")
        self._child = Child(own_module("netdiag.capture.scapy_child", arguments(task)))
        line = self._child.wait_for(lambda text: text.startswith("{"), START_S)
        said = _parse(line)
        if said.get("state") != _READY:
            lines = self._child.lines
            self.stop()
            raise failure(said, lines)

    def stop(self) -> Counts:
        """See ``Backend.stop``."""
        child, self._child = self._child, None
        if child is not None:
            child.stop()
            self._counts = _counts(child.lines)
        return self._counts

    def trouble(self) -> str | None:
        """See ``Backend.trouble``."""
        if self._child is None or not self._child.ended():
            return None
        return f"the capture process has ended: {_last(self._child.lines)}"


def arguments(task: Task) -> str:
    """The child's one argument. Filters travel as hex: they are assembled here, where the rules are."""
    interfaces = [
        {"name": name, "filter": task.filter.program(drop_outgoing=is_loopback(name)).hex()} for name in task.interfaces
    ]
    return json.dumps({"path": task.path, "interfaces": interfaces, "buffer_bytes": task.buffer_bytes})


def failure(said: dict[str, object], lines: list[str]) -> Unavailable:
    """The exception for a child that did not become ready."""
    reason = str(said.get("reason") or _last(lines))
    if said.get("state") == "forbidden":
        return PrivilegeMissing(reason)
    return ToolMissing(reason) if said.get("state") == "missing" else CaptureFailed(reason)


def _counts(lines: list[str]) -> Counts:
    said = next((s for line in reversed(lines) if (s := _parse(line)).get("state") == "done"), {})
    received, dropped = said.get("received"), said.get("dropped")
    return Counts(
        received=received if isinstance(received, int) else None, dropped=dropped if isinstance(dropped, int) else None
    )


def _parse(line: str | None) -> dict[str, object]:
    try:
        value = json.loads(line or "")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _last(lines: list[str]) -> str:
    return lines[-1] if lines else "no word from the capture process"
