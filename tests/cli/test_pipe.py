"""Captures that come through a pipe while they are made: as a person ends ``tcpdump -w - | netdiag analyze -``."""

from __future__ import annotations

import array
import fcntl
import os
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("timing")
WRITER = """
import signal, sys, time
data = open(sys.argv[1], "rb").read()
half = len(data) // 2
sys.stdout.buffer.write(data[:half]); sys.stdout.buffer.flush()
def end(*_):
    sys.stdout.buffer.write(data[half:]); sys.stdout.buffer.flush()
    if sys.argv[2] == "ends":
        sys.exit(0)
signal.signal(signal.SIGINT, end)
print("written", file=sys.stderr, flush=True)
while True:
    time.sleep(0.1)
"""
"""Like tcpdump it flushes what it has at ^C; unlike it, it may then go on."""


class Pipeline:
    """Both programs of a pipeline, in one process group of their own."""

    def __init__(self, capture: Path, what: str, *options: str) -> None:
        self.writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(capture), what],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        )
        self.reader = subprocess.Popen(
            [sys.executable, "-m", "netdiag", "analyze", "-", *options],
            stdin=self.writer.stdout,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=self.writer.pid,
        )
        assert self.writer.stdout is not None
        assert self.writer.stderr is not None
        self.between = self.writer.stdout
        self.writer.stderr.readline()

    def interrupt(self) -> None:
        """As the terminal does: to everybody in the foreground."""
        os.killpg(self.writer.pid, signal.SIGINT)

    def wait_until_reading(self) -> None:
        """Until the reader has taken what is there."""
        left, ends_s = array.array("i", [1]), time.monotonic() + 20
        while left[0]:
            assert time.monotonic() < ends_s
            time.sleep(0.02)
            fcntl.ioctl(self.between, termios.FIONREAD, left)


@pytest.fixture
def pipelines() -> Iterator[list[Pipeline]]:
    started: list[Pipeline] = []
    yield started
    for pipeline in started:
        for process in (pipeline.writer, pipeline.reader):
            if process.poll() is None:
                process.kill()
            process.wait()
        pipeline.between.close()


CAPTURE = Path(__file__).parents[2] / "captures" / "h1.pcapng"


def test_the_interrupt_key_ends_the_reading_with_a_report_of_everything(pipelines: list[Pipeline]) -> None:
    pipelines.append(both := Pipeline(CAPTURE, "ends"))
    both.wait_until_reading()
    both.interrupt()
    out, err = both.reader.communicate(timeout=30)
    assert "GET /v1/models  200" in out
    assert "17 packets" in out
    assert (both.reader.returncode, err) == (0, "")


def test_a_writer_that_goes_on_is_left_alone(pipelines: list[Pipeline]) -> None:
    pipelines.append(both := Pipeline(CAPTURE, "goes on"))
    both.wait_until_reading()
    both.interrupt()
    out, err = both.reader.communicate(timeout=30)
    assert "GET /v1/models  200" in out
    assert "stopped reading at ^C" in err
    assert both.reader.returncode == 0


def test_a_second_time_ends_it_at_once(pipelines: list[Pipeline]) -> None:
    pipelines.append(both := Pipeline(CAPTURE, "goes on"))
    both.wait_until_reading()
    both.interrupt()
    time.sleep(0.3)
    both.interrupt()
    out, _ = both.reader.communicate(timeout=30)
    assert (both.reader.returncode, out) == (130, "")


def test_a_fifo_s_last_packet_is_not_held_back_and_its_name_is_known(tmp_path: Path) -> None:
    fifo = tmp_path / "growing"
    os.mkfifo(fifo)

    def write() -> None:
        data = CAPTURE.read_bytes()
        with open(fifo, "wb", buffering=0) as file:
            for start in range(0, len(data), 1500):
                file.write(data[start : start + 1500])
                time.sleep(0.01)

    writer = threading.Thread(target=write)
    writer.start()
    done = subprocess.run(
        [sys.executable, "-m", "netdiag", "analyze", str(fifo)], capture_output=True, text=True, check=False, timeout=60
    )
    writer.join()
    assert done.returncode == 0
    assert "17 packets" in done.stdout
    assert done.stdout.startswith(f"{fifo.name}  ") or "growing" in done.stdout.splitlines()[0]
