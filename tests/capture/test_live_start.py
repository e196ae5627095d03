from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from netdiag.capture import supervisor
from netdiag.capture.choose import start_first
from netdiag.capture.filter import CaptureFilter
from netdiag.capture.keep import keep
from netdiag.capture.live import CaptureFailed, Counts, LiveCapture, Task
from netdiag.capture.record import RecordConfig, record
from netdiag.errors import OutputError

MARKED = b"as the kernel hands it over"


class Recorder:
    """A backend that makes its file, as all do, and then runs or does not."""

    name = "fabricated"

    def __init__(self, *, works: bool) -> None:
        self._works = works

    def start(self, task: Task) -> None:
        """As a supervisor's child: the file must be new."""
        descriptor = os.open(task.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.close(descriptor)
        if not self._works:
            raise CaptureFailed("boom")

    def stop(self) -> Counts:
        """Nothing runs."""
        return Counts()

    def trouble(self) -> str | None:
        """None."""
        return None


def capture(path: Path, *, works: bool) -> LiveCapture:
    task = Task(path=str(path), interfaces=("lo",), filter=CaptureFilter(rules=()))
    return LiveCapture(backend=Recorder(works=works), task=task, beacons=())


def test_a_recorder_that_does_not_start_leaves_its_place_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "probe.pcapng"
    running = start_first("auto", lambda name: capture(path, works=name == "scapy"))
    assert running.backend.trouble() is None
    assert path.exists()
    running.abort()


def test_nothing_is_left_where_none_starts_and_nothing_taken_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "probe.pcapng"
    with pytest.raises(CaptureFailed):
        start_first("auto", lambda name: capture(path, works=False))
    assert not path.exists()
    path.write_bytes(MARKED)
    with pytest.raises(OSError, match="exists"):
        capture(path, works=True).start()
    assert path.read_bytes() == MARKED


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, 8_192))


def test_a_full_disk_ends_the_recorder_with_one_line(tmp_path: Path) -> None:
    path = tmp_path / "c.pcapng"
    command = ["sh", "-c", "head -c 100000 /dev/zero; exec sleep 30"]
    began_s = time.monotonic()
    started = [sys.executable, "-I", "-S", supervisor.__file__, str(path), *command]
    with subprocess.Popen(
        started, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limited
    ) as process:
        assert process.wait(timeout=20) == 1, "its standard input is still open"
        assert process.stderr is not None
        said = process.stderr.read()
    assert said.splitlines()[-1] == f"{path}: File too large"
    assert "Traceback" not in said
    assert time.monotonic() - began_s < 15


def test_a_copy_that_does_not_fit_is_removed(tmp_path: Path) -> None:
    source, destination = tmp_path / "a", tmp_path / "b"
    source.write_bytes(b"\x0a\x0d\x0d\x0a" + (28).to_bytes(4, "little") + bytes(200_000))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        with pytest.raises(OutputError, match="File too large"):
            keep(str(source), str(destination))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not destination.exists()


def test_a_folder_that_is_not_there_is_no_missing_right_to_capture(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="folder does not exist"):
        record(RecordConfig(path=str(tmp_path / "none" / "c.pcapng")), stop=threading.Event())
