"""Small helpers to run the probe in tests."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from netdiag.lab import LabServer
from netdiag.probe.plan import ProbeConfig
from netdiag.probe.run import run
from netdiag.records.recording import ClientConnection, ClientRequest, Recording

NS_PER_MS = 1_000_000


def config_for(server: LabServer, path: str = "/v1/models", **options: Any) -> ProbeConfig:
    """One counted trial per arm against a lab server, without a capture."""
    defaults: dict[str, Any] = {"trials": 1, "capture": "none", "seed": 1}
    if server.config.tls:
        defaults["cacert"] = server.ca_file
    return ProbeConfig(urls=(server.url + path,), **(defaults | options))


def probe_lab(server: LabServer, path: str = "/v1/models", **options: Any) -> Recording:
    """Run it."""
    return run(config_for(server, path, **options))


def connection_of(recording: Recording, request: ClientRequest) -> ClientConnection:
    """The connection that a request used."""
    assert request.connection_id is not None
    return recording.connections[request.connection_id]


def open_descriptors() -> int:
    """How many file descriptors this process has."""
    return len(os.listdir("/proc/self/fd"))


def foreign_threads() -> list[str]:
    """Threads of ours that are not the main one."""
    return [t.name for t in threading.enumerate() if t.name.startswith("netdiag") and t.name != "netdiag-lab"]


def children() -> list[int]:
    """Process ids of our children, zombies included."""
    found: list[int] = []
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children", encoding="ascii") as file:
            found += [int(word) for word in file.read().split()]
    return found


def settles(true: Callable[[], bool], within_s: float = 3.0) -> None:
    """Assert that something comes true in a while."""
    ends_s = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < ends_s, "it did not come true in time"
        time.sleep(0.02)
