from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CAPTURE = Path(__file__).parents[2] / "captures" / "clear-text-h2.pcapng"


def closing(descriptor: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """netdiag as a shell starts it with ``N>&-``."""
    command = [sys.executable, "-m", "netdiag", *arguments]
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {descriptor}>&-', "sh", *command], capture_output=True, text=True, timeout=60
    )


def test_standard_input_that_is_closed_is_an_empty_capture() -> None:
    done = closing(0, "analyze", "-")
    assert (done.returncode, done.stdout) == (65, "")
    assert "the input is empty" in done.stderr


def test_standard_output_that_is_closed_is_an_error_and_no_bug() -> None:
    done = closing(1, "analyze", str(CAPTURE))
    assert (done.returncode, done.stderr) == (73, "netdiag: standard output is closed\n")


def test_without_standard_error_the_report_is_the_same() -> None:
    with_it = subprocess.run(
        [sys.executable, "-m", "netdiag", "analyze", str(CAPTURE)], capture_output=True, text=True, timeout=60
    )
    done = closing(2, "analyze", str(CAPTURE))
    assert (done.returncode, done.stdout) == (0, with_it.stdout)
    assert closing(2, "analyze", "nothing.pcap").returncode == 65


@pytest.mark.parametrize("descriptor", [0, 2])
def test_no_file_of_ours_takes_the_place_of_a_closed_stream(descriptor: int, tmp_path: Path) -> None:
    """A message for the person would end in the result file that has become descriptor 2."""
    code = "import os; from netdiag.cli.streams import fill_closed_streams as f; f(); print(os.open('x', os.O_CREAT))"
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {descriptor}>&-', "sh", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        timeout=60,
    )
    assert int(done.stdout) > 2


def test_netdiag_alone_shows_its_help_without_calling_it_an_error() -> None:
    for arguments in ([], ["lab"]):
        done = subprocess.run([sys.executable, "-m", "netdiag", *arguments], capture_output=True, text=True, timeout=60)
        assert done.returncode == 64
        assert done.stderr.startswith("Usage: netdiag")
        assert "Try" not in done.stderr


def test_an_empty_file_name_is_not_the_current_folder() -> None:
    done = subprocess.run([sys.executable, "-m", "netdiag", "analyze", ""], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (64, "")
    assert "a file name is empty" in done.stderr
