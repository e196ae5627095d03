from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from netdiag import api
from netdiag.errors import PrivilegeMissing, ProbeError, ToolMissing

Run = Callable[..., Result]
NETDIAG = [sys.executable, "-m", "netdiag"]


def test_ok(run: Run, good: Path) -> None:
    assert run("analyze", good).exit_code == 0


def test_a_failed_request_is_1(run: Run, refused: Path) -> None:
    assert run("analyze", refused).exit_code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("frobnicate",),
        ("analyze",),
        ("analyze", "x.pcap", "--no-such-option"),
        ("analyze", "x.pcap", "--json", "--jsonl"),
        ("analyze", "x.pcap", "--filter", "colour=red"),
        ("analyze", "x.pcap", "--filter", "port=http"),
        ("analyze", "x.pcap", "--filter", "time=yesterday..today"),
        ("analyze", "x.pcap", "-o", "x.docx"),
        ("analyze", "x.pcap", "y.pcap", "-o", "x.png"),
        ("analyze", "x.pcap", "--top", "-1"),
        ("probe",),
        ("probe", "ftp://example.com/"),
        ("probe", "--lab", "https://example.com/"),
        ("probe", "https://user:secret@example.com/"),
        ("probe", "https://example.com/", "-H", "no colon"),
        ("probe", "https://example.com/", "-d", "@/no/such/file"),
        ("packets", "x.pcap"),
        ("completion", "tcsh"),
    ],
)
def test_usage_is_64_in_one_sentence_without_traceback(run: Run, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 64
    assert result.stderr.startswith("netdiag: ")
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) <= 3
    assert result.stdout == ""


def test_no_secret_of_the_command_line_is_repeated(run: Run) -> None:
    result = run("probe", "https://example.com/", "-H", "Authorization Bearer canary")
    assert "canary" not in result.output


def test_a_file_that_is_no_capture_is_65(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    result = run("analyze", path)
    assert result.exit_code == 65
    assert "notes.txt" in result.stderr
    assert run("analyze", tmp_path / "none.pcap").exit_code == 65
    assert run("connections", path).exit_code == 65


def test_a_key_log_that_cannot_be_read_is_65(run: Run, good: Path, tmp_path: Path) -> None:
    without_keys = run("analyze", good, "--keylog", tmp_path / "none.keys", "--json")
    assert without_keys.exit_code == 65
    assert '"exchanges"' in without_keys.output  # the packets tell most without them


def test_an_output_that_exists_or_cannot_be_is_73(run: Run, good: Path, tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    target.write_text("precious")
    assert run("analyze", good, "-o", target).exit_code == 73
    assert target.read_text() == "precious"
    assert run("analyze", good, "-o", target, "--force").exit_code == 0
    assert target.read_text().startswith("{")
    assert run("analyze", good, "-o", tmp_path / "none" / "x.json").exit_code == 73


def test_a_link_is_never_written_through(run: Run, good: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "link.json").symlink_to(victim)
    assert run("analyze", good, "-o", tmp_path / "link.json", "--force").exit_code == 73
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ToolMissing("dumpcap is not installed", advice="apt install wireshark-common"), 69),
        (PrivilegeMissing("no right to capture"), 69),
        (ProbeError("no request could be made"), 75),
    ],
)
def test_errors_of_the_library_are_their_codes_and_their_advice(
    run: Run, good: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(api, "analyze", fail)
    result = run("analyze", good)
    assert result.exit_code == code
    assert result.stderr == f"netdiag: {error}\n"


def test_a_bug_of_ours_is_70_short_and_long_with_debug(run: Run, good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("\x1b[2Jboom")

    monkeypatch.setattr(api, "analyze", fail)
    result = run("analyze", good)
    assert result.exit_code == 70
    assert "ZeroDivisionError" in result.stderr
    assert "--debug" in result.stderr
    assert "\x1b" not in result.stderr
    assert isinstance(run("analyze", good, "--debug").exception, ZeroDivisionError)


def test_a_bug_in_one_file_of_many_does_not_stop_the_others(
    run: Run, good: Path, refused: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = api.analyze

    def fail_on_one(path: str, **options: object) -> object:
        if path.endswith("refused.pcap"):
            raise ZeroDivisionError
        return whole(path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(api, "analyze", fail_on_one)
    result = run("analyze", refused, good)
    assert result.exit_code == 70
    assert "GET /v1/models" in result.stdout


def test_the_interrupt_key_is_130(run: Run, good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "analyze", interrupt)
    result = run("analyze", good)
    assert result.exit_code == 130
    assert result.stderr == ""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_a_real_process_quietly(tmp_path: Path, number: signal.Signals, code: int) -> None:
    fifo = tmp_path / "growing.pcap"
    os.mkfifo(fifo)
    process = subprocess.Popen([*NETDIAG, "analyze", str(fifo)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    writer = os.open(fifo, os.O_WRONLY)
    try:
        time.sleep(0.3)
        process.send_signal(number)
        _, errors = process.communicate(timeout=20)
    finally:
        os.close(writer)
        process.kill()
        process.wait()
    assert process.returncode == code
    assert errors == b""


def test_a_broken_pipe_is_quiet(tmp_path: Path, good: Path) -> None:
    code = f"import sys; sys.argv[1:] = ['analyze', {str(good)!r}, '--json']; from netdiag.cli.main import main; main()"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-c", code], stdout=writer, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 141


def test_a_full_disk_is_73(good: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full on this system")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*NETDIAG, "analyze", str(good), "--json"], stdout=full, stderr=subprocess.PIPE, check=False, timeout=60
        )
    assert done.returncode == 73
    assert b"No space left" in done.stderr
    assert b"Traceback" not in done.stderr
