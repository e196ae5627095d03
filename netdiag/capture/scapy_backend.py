"""scapy's listening socket in a process of its own, read raw: no external program, the default where dumpcap is absent.

scapy's own sniffer dissects each packet (2,000 to 4,000 a second) and loses what it cannot keep up with without a word. So only its socket
is used: our filter is attached to it, its buffer is made large, and octets go to the file undissected, with the kernel's nanosecond stamps.
"""

from __future__ import annotations

import json
import sys

from netdiag.capture.child import Child, own_module
from netdiag.capture.child_backend import ChildBackend, conclusion
from netdiag.capture.live import Counts, Task
from netdiag.capture.route import is_loopback
from netdiag.errors import ToolMissing

START_S = 15.0
"""Includes the import of scapy on a slow machine."""


class ScapyBackend(ChildBackend):
    """Starts ``netdiag.capture.scapy_child`` and reads its few lines of JSON."""

    name = "scapy"

    def start(self, task: Task) -> None:
        """See ``Backend.start``."""
        if sys.platform != "linux":
            raise ToolMissing("the scapy backend needs Linux packet sockets", advice="use --capture dumpcap")
        self._begin(Child(own_module("netdiag.capture.scapy_child", arguments(task))), START_S)

    def counts(self, lines: list[str]) -> Counts:
        """What the kernel says of its sockets."""
        said = conclusion(lines)
        return Counts(received=_number(said.get("received")), dropped=_number(said.get("dropped")))


def arguments(task: Task) -> str:
    """The child's one argument. Filters travel as hex: they are assembled here, where the rules are."""
    interfaces = [
        {"name": name, "filter": task.filter.program(drop_outgoing=is_loopback(name)).hex()} for name in task.interfaces
    ]
    return json.dumps({"path": task.path, "interfaces": interfaces, "buffer_bytes": task.buffer_bytes})


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None
