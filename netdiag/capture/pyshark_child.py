"""The process behind ``pyshark_backend``. It leads a process group of its own; when standard input ends, the whole group is interrupted.

Says ``{"state": "ready"}`` when tshark has begun its file, and at the end how many packets pyshark handed over, in how many seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
import time
from typing import Any

_FILE_S = 15.0
_END_S = 3.0
"""How long tshark may take to end after the interrupt before everything is killed."""


class Counter:
    """Packets that pyshark handed over."""

    def __init__(self) -> None:
        self.packets = 0
        self.first_s: float | None = None
        self.last_s = 0.0

    def __call__(self, packet: Any) -> None:
        """One packet was handed over."""
        now_s = time.monotonic()
        self.first_s = now_s if self.first_s is None else self.first_s
        self.last_s = now_s
        self.packets += 1

    def seconds(self) -> float:
        """From the first packet handed over to the last."""
        return 0.0 if self.first_s is None else self.last_s - self.first_s


def main(argument: str) -> int:
    """The process's exit code."""
    signal.signal(signal.SIGINT, lambda number, frame: None)  # not SIG_IGN, which tshark and dumpcap would inherit
    task = json.loads(argument)
    try:
        import pyshark
    except ImportError:
        _say({"state": "missing", "reason": "pyshark is not installed"})
        return 1
    counter = Counter()
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    threading.Thread(target=_announce, args=(task["path"],), daemon=True).start()
    threading.Thread(target=_end_with_parent, args=(counter,), daemon=True).start()
    try:
        capture = pyshark.LiveCapture(
            interface=list(task["interfaces"]),
            bpf_filter=task["filter"],
            output_file=task["path"],
            eventloop=loop,
        )
        loop.run_until_complete(capture.packets_from_tshark(counter))
    except Exception as error:  # pyshark raises many kinds, some of them because we interrupted it
        _say({"state": "failed", "reason": f"pyshark: {type(error).__name__}: {error}"})
    _finish(counter)
    return 0


def _announce(path: str) -> None:
    ends_s = time.monotonic() + _FILE_S
    while time.monotonic() < ends_s:
        with contextlib.suppress(OSError):
            if os.path.getsize(path) > 0:
                _say({"state": "ready"})
                return
        time.sleep(0.02)
    _say({"state": "failed", "reason": "tshark did not begin its file"})


def _end_with_parent(counter: Counter) -> None:
    """Wait for the end of standard input; interrupt the group; kill what does not listen, ourselves included."""
    while os.read(0, 4096):
        pass
    os.killpg(0, signal.SIGINT)
    time.sleep(_END_S)
    _finish(counter)


def _finish(counter: Counter) -> None:
    _say({"state": "done", "dissected": counter.packets, "seconds": counter.seconds()})
    os.killpg(0, signal.SIGKILL)


_saying = threading.Lock()


def _say(what: dict[str, object]) -> None:
    with _saying:
        os.write(1, (json.dumps(what) + "\n").encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
