"""Serving in the foreground, for the command line."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import TextIO

from netdiag.lab.config import LabConfig
from netdiag.lab.server import LabServer


def serve(
    config: LabConfig,
    *,
    announce: Callable[[LabServer], None],
    log_stream: TextIO | None = None,
    ended: threading.Event | None = None,
) -> int:
    """Serve until SIGINT or SIGTERM and return the exit code of that signal's end (130 or 143); 0 when ``ended`` was set.

    ``announce`` is called once connections are accepted. Raises AddressInUse or UsageError before anything is served. Signal handlers
    are set in the main thread only and put back afterwards.
    """
    ended = ended or threading.Event()
    caught: list[int] = []

    def on_signal(number: int, _: FrameType | None) -> None:
        caught.append(number)
        ended.set()

    with LabServer(config, log_stream=log_stream) as server:
        in_main = threading.current_thread() is threading.main_thread()
        before = {n: signal.signal(n, on_signal) for n in (signal.SIGINT, signal.SIGTERM)} if in_main else {}
        try:
            announce(server)
            # A wait without limit would not let Python run the handler on every platform.
            while not ended.wait(0.5):
                pass
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return 128 + caught[0] if caught else 0
