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
from click.testing import CliRunner

from netdiag import api
from netdiag.cli.main import cli
from netdiag.errors import UsageError
from tests.support.tools import needs_tshark

pytestmark = pytest.mark.xdist_group("timing")
WRITER = """
import signal, sys, time
data = open(sys.argv[1], "rb").read()
half = 0 if "silent" in sys.argv[2] else len(data) // 2
sys.stdout.buffer.write(data[:half]); sys.stdout.buffer.flush()
def end(*_):
    if sys.argv[2] != "silent to the end":
        sys.stdout.buffer.write(data[half:]); sys.stdout.buffer.flush()
    if sys.argv[2] != "goes on":
        sys.exit(0)
signal.signal(signal.SIGINT, end)
print("written", file=sys.stderr, flush=True)
while True:
    time.sleep(0.1)
"""
"""Like tcpdump it flushes what it has at ^C (without -U that may be all it ever had: ``silent``); unlike it, it may then go on."""


class Pipeline:
    """Both programs of a pipeline, in one process group of their own."""

    def __init__(self, capture: Path, what: str, *, command: str = "analyze") -> None:
        self.writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(capture), what],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        )
        self.reader = subprocess.Popen(
            [sys.executable, "-m", "netdiag", command, "-"],
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

    def wait_until_waiting(self) -> None:
        """Until the reader, which sees nothing to take, has done all that it does before: it looks again five times a second, and no more."""
        before, ends_s = -1, time.monotonic() + 30
        while (used := self._used_ticks()) > before + 1 or used < 5:
            assert time.monotonic() < ends_s
            before = used
            time.sleep(0.5)

    def _used_ticks(self) -> int:
        fields = Path(f"/proc/{self.reader.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])


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


def interrupted_while_silent(pipelines: list[Pipeline], what: str) -> tuple[int, str]:
    pipelines.append(both := Pipeline(CAPTURE, what))
    both.wait_until_waiting()
    both.interrupt()
    out, _ = both.reader.communicate(timeout=30)
    return both.reader.returncode, out


def test_all_octets_may_come_after_the_interrupt_key(pipelines: list[Pipeline]) -> None:
    code, out = interrupted_while_silent(pipelines, "silent")
    assert "17 packets" in out
    assert code == 0


def test_where_none_come_even_then_the_interrupt_key_ends_it(pipelines: list[Pipeline]) -> None:
    assert interrupted_while_silent(pipelines, "silent to the end") == (130, "")


@needs_tshark
def test_verify_has_the_same_patience_and_gives_tshark_what_came(pipelines: list[Pipeline]) -> None:
    pipelines.append(both := Pipeline(CAPTURE, "ends", command="verify"))
    both.wait_until_reading()
    both.interrupt()
    out, err = both.reader.communicate(timeout=60)
    compared = {line.split()[0]: line.split()[1:3] for line in out.splitlines()[2:] if len(line.split()) == 4}
    assert compared["packets"] == compared["connections"] == ["1", "1"]
    assert (both.reader.returncode, err) == (0, "")


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


def fifo_of(tmp_path: Path) -> Iterator[Path]:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(CAPTURE.read_bytes()))
    writer.start()
    yield fifo
    writer.join(10)


fifo = pytest.fixture(fifo_of)


def test_packets_of_a_fifo_are_read_again(fifo: Path) -> None:
    result = CliRunner().invoke(cli, ["packets", str(fifo), "--exchange", "0"])
    assert (result.exit_code, result.output.splitlines()[0].split()[:3]) == (0, ["#0", "GET", "/v1/models"])


@pytest.mark.parametrize("name", ["copy.pcapng", "request.svg"])
def test_results_that_need_the_packets_of_a_fifo_have_them(fifo: Path, name: str, tmp_path: Path) -> None:
    target = tmp_path / name
    result = CliRunner().invoke(cli, ["analyze", str(fifo), "--exchange", "0", "-o", str(target)])
    assert result.exit_code == 0, result.output
    assert f"/{fifo.name}  pcapng  " in result.output.splitlines()[0]
    assert target.stat().st_size > CAPTURE.stat().st_size / 2


def test_standard_input_from_a_file_can_be_read_again(tmp_path: Path) -> None:
    target = tmp_path / "copy.pcapng"
    with CAPTURE.open("rb") as file:
        command = [sys.executable, "-m", "netdiag", "analyze", "-", "-o", str(target)]
        done = subprocess.run(command, stdin=file, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert api.analyze(target).source.packets == 17


def test_nothing_that_is_no_capture_is_kept(tmp_path: Path) -> None:
    """An endless pipe of something else is refused at its first octets."""
    command = [sys.executable, "-m", "netdiag", "analyze", "-", "-o", str(tmp_path / "copy.pcapng")]
    with Path("/dev/zero").open("rb") as endless:
        done = subprocess.run(
            ["sh", "-c", 'cat | exec "$@"', "sh", *command], stdin=endless, capture_output=True, text=True, timeout=60
        )
    assert done.returncode == 65
    assert "not a capture" in done.stderr or "no capture" in done.stderr


def test_the_library_does_not_read_standard_input_twice() -> None:
    with pytest.raises(UsageError, match="give a file"):
        api.verify("-")
