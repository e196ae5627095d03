"""pyshark (tshark under Python) in a process of its own, with its own event loop: so it works in Jupyter, and its children end with us.

tshark writes every packet to the file, which is what the analysis reads. What pyshark itself hands over is counted beside it, because its
dissection cannot keep up with a download (about 260 packets a second): the note says how far it fell behind.
"""

from __future__ import annotations

import json
import shutil

from netdiag.capture.child import Child, own_module
from netdiag.capture.child_backend import ChildBackend, conclusion
from netdiag.capture.live import Counts, Task
from netdiag.capture.privileges import check_dumpcap
from netdiag.errors import ToolMissing

START_S = 20.0
STOP_S = 8.0


class PysharkBackend(ChildBackend):
    """Starts ``netdiag.capture.pyshark_child``."""

    name = "pyshark"
    stop_s = STOP_S

    def __init__(self) -> None:
        super().__init__()
        self._task: Task | None = None

    def start(self, task: Task) -> None:
        """See ``Backend.start``. Rights are checked first: without them pyshark hangs for ever instead of saying so."""
        if shutil.which("tshark") is None:
            raise ToolMissing("tshark is not installed", advice="install tshark, or use --capture scapy")
        check_dumpcap(task.interfaces, task.filter)
        self._task = task
        argument = json.dumps({"path": task.path, "interfaces": task.interfaces, "filter": task.filter.text()})
        self._begin(Child(own_module("netdiag.capture.pyshark_child", argument)), START_S)

    def counts(self, lines: list[str]) -> Counts:
        """The kernel's drops are not known: pyshark keeps what dumpcap says about them to itself."""
        recorded = None if self._task is None else _packets_in(self._task.path)
        said = conclusion(lines)
        return Counts(
            received=recorded, dropped=None, note=_behind(said.get("dissected"), said.get("seconds"), recorded)
        )


def _behind(dissected: object, seconds: object, recorded: int | None) -> str | None:
    if not isinstance(dissected, int) or not isinstance(seconds, float) or recorded is None:
        return "how far pyshark fell behind is not known"
    if dissected >= recorded:
        return None
    rate = f", {dissected / seconds:.0f} packets/s" if seconds > 0 else ""
    return f"pyshark dissected {dissected} of {recorded} packets in time{rate}; the analysis reads all {recorded} from the file"


def _packets_in(path: str) -> int | None:
    from netdiag.capture.source import open_capture
    from netdiag.errors import NetdiagError

    try:
        with open_capture(path) as capture:
            return sum(len(window.packets) for window in capture.windows())
    except NetdiagError:
        return None
