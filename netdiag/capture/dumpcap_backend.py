"""dumpcap (Wireshark's recorder): the least overhead, nanosecond stamps, and a right to capture that can be given to it alone."""

from __future__ import annotations

import re
import shutil
import sys

from netdiag.capture.child import Child, supervised
from netdiag.capture.child_backend import ChildBackend
from netdiag.capture.filter import SNAP_BYTES
from netdiag.capture.live import CaptureFailed, Counts, Task
from netdiag.errors import PrivilegeMissing, ToolMissing, Unavailable

START_S = 5.0
_FILE_LINE = "File: "
# "Packets received/dropped on interface 'lo': 10/0 (pcap:0/dumpcap:0/flushed:0/ps_ifdrop:0) (100.0%)"
_STATISTICS = re.compile(
    r"^Packets received/dropped on interface .*: (\d+)/(\d+) \(pcap:(\d+)/dumpcap:(\d+)/flushed:(\d+)"
)


class DumpcapBackend(ChildBackend):
    """One dumpcap for all interfaces. The parent's end ends it (``supervisor.py``)."""

    name = subject = "dumpcap"

    def __init__(self, program: str = "dumpcap") -> None:
        super().__init__()
        self._program = program

    def start(self, task: Task) -> None:
        """See ``Backend.start``. dumpcap names its file when it has opened the interfaces and written the file's head."""
        path = shutil.which(self._program)
        if path is None:
            raise ToolMissing("dumpcap is not installed", advice="install Wireshark's dumpcap, or use --capture scapy")
        self._child = Child(supervised(command(path, task), task.path))
        if self._child.wait_for(lambda line: line.startswith(_FILE_LINE), START_S) is None:
            lines = self._child.lines
            self.stop()
            raise failure(lines)

    def counts(self, lines: list[str]) -> Counts:
        """The sums over all interfaces; "dropped" are the kernel's drops and dumpcap's own."""
        return _counts(lines)

    def reason(self, lines: list[str]) -> str:
        """See ``_reason``."""
        return _reason(lines)


def command(program: str, task: Task) -> list[str]:
    """The fixed argument vector: no shell, and the filter is made of our own targets."""
    megabytes = max(1, task.buffer_bytes >> 20)
    arguments = [program, "-q", "-n", "-w", "-"]
    for interface in task.interfaces:
        arguments += ["-i", interface, "-f", task.filter.text(), "-s", str(SNAP_BYTES), "-B", str(megabytes), "-p"]
    return arguments


def failure(lines: list[str]) -> Unavailable:
    """The exception for what dumpcap said when it did not start."""
    reason = _reason(lines)
    text = " ".join(lines)
    if "permission" in text.lower() or "not permitted" in text.lower() or "not allowed" in text.lower():
        return PrivilegeMissing(reason)
    return CaptureFailed(reason)


def _reason(lines: list[str]) -> str:
    """dumpcap's first own words that are not progress."""
    said = [line for line in lines if line and not line.startswith(("Capturing on", _FILE_LINE, "Packets"))]
    return said[0].removeprefix("dumpcap: ") if said else f"no word from dumpcap ({sys.platform})"


def _counts(lines: list[str]) -> Counts:
    """The sums over all interfaces; "dropped" are the kernel's drops and dumpcap's own."""
    found = [match for line in lines if (match := _STATISTICS.match(line))]
    if not found:
        return Counts()
    return Counts(
        received=sum(int(match[1]) for match in found),
        dropped=sum(int(match[3]) + int(match[4]) + int(match[5]) for match in found),
    )
