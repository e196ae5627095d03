"""``netdiag watch`` against the lab, as a person runs it: lines, JSON lines, goals, and ^C."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from netdiag.lab import Behaviour
from tests.support.lab import start_lab

__all__ = ["start_lab"]
pytestmark = pytest.mark.xdist_group("timing")


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "netdiag", "watch", "--lab", *options]


def test_lines_table_and_json_lines(tmp_path):
    file = tmp_path / "watch.jsonl"
    done = subprocess.run(
        command("--every", "0.3", "-n", "3", "--jsonl", str(file), "--slo", "total=5000"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["tick"] for row in rows] == [1, 2, 3]
    assert {row["status"] for row in rows} == {200}
    assert all(row["lag_ns"] >= 0 and row["total_ns"] > 150_000_000 for row in rows)
    assert "1st token" in done.stdout
    assert "met (0 of 3 over)" in done.stdout


def test_a_model_s_api_with_its_budget_first_tokens_and_stalls(start_lab):
    server = start_lab(Behaviour(stream=None, events=30, gap_ms=15, pause_after=15, pause_ms=500))
    done = subprocess.run(
        [
            *command()[:-1],
            server.url,
            "--cacert",
            str(server.ca_file),
            "--llm",
            "openai",
            "--model",
            "m",
            "--http2",
            "--every",
            "0.3",
            "-n",
            "2",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "token budget: 2 requests, at most 128 output tokens" in done.stderr
    first, second = (line for line in done.stdout.splitlines() if "#" in line)
    assert "1st token" in first
    assert 480 < float(first.partition("stall ")[2].partition(" ")[0]) < 600
    assert " server" in first
    assert "1st token" in second
    assert done.stdout.count("1st token") >= 3  # and in the table


def test_a_broken_goal_is_exit_code_4():
    done = subprocess.run(
        command("--every", "0.3", "-n", "2", "--slo", "total=50"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 4
    assert "broken (2 of 2 over)" in done.stdout


def test_a_watch_that_cannot_keep_up_says_so_and_its_goals_count_from_the_schedule(start_lab):
    server = start_lab(Behaviour(wait_ms=500))
    asked = [
        server.url + "/v1/models",
        "--cacert",
        str(server.ca_file),
        "--every",
        "250ms",
        "-n",
        "3",
        "--slo",
        "total=700",
    ]
    done = subprocess.run([*command()[:-1], *asked], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 4
    assert "later than scheduled" in done.stdout
    assert done.stdout.count(" late") >= 2


def test_interrupt_ends_with_the_table():
    with subprocess.Popen(
        command("--every", "0.5"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        first = running.stdout.readline()
        started = time.monotonic()
        running.send_signal(signal.SIGINT)
        rest, errors = running.communicate(timeout=20)
    assert "#1" in first
    assert time.monotonic() - started < 5
    assert "HTTP/1.1" in rest or "1st token" in first
    assert "Traceback" not in errors
    assert running.returncode in (0, 130)


def test_a_second_interrupt_ends_a_call_that_hangs(start_lab):
    server = start_lab(Behaviour(wait_ms=20_000))
    watch = [*command()[:-1], server.url + "/v1/models", "--cacert", str(server.ca_file), "--every", "1"]
    with subprocess.Popen(watch, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        while not server.log.exchanges():
            time.sleep(0.05)
        time.sleep(0.2)
        running.send_signal(signal.SIGINT)
        assert running.stderr is not None
        assert "^C again ends at once" in running.stderr.readline()
        started = time.monotonic()
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=20)
    assert time.monotonic() - started < 5
    assert running.returncode == 130
    assert not errors


def test_an_existing_file_is_not_overwritten(tmp_path):
    file = tmp_path / "old.jsonl"
    file.write_text("precious\n")
    done = subprocess.run(
        command("-n", "1", "--jsonl", str(file)), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 73
    assert file.read_text() == "precious\n"


@pytest.mark.parametrize("options", [("--every", "1", "--rate", "1"), ("--rate", "500"), ("-n", "5000")])
def test_what_cannot_be_is_usage(options):
    assert subprocess.run(command(*options), capture_output=True, timeout=60, check=False).returncode == 64


@pytest.mark.peers
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_in_a_real_terminal_the_table_stands_still_below_the_lines(tmp_path: Path) -> None:
    """Once on the screen, however often it was drawn; after ^C it is there for good, and every line of the file is whole."""
    session, lines = f"netdiag-{os.getpid()}", tmp_path / "w.jsonl"
    watch = f"{sys.executable} -m netdiag watch --lab --rate 5 --jsonl {lines}"

    def tmux(*arguments: str) -> str:
        return subprocess.run(["tmux", "-L", session, *arguments], check=True, capture_output=True, text=True).stdout

    def screen() -> list[str]:
        return tmux("capture-pane", "-p").splitlines()

    def until(done: Callable[[list[str]], bool]) -> list[str]:
        for _ in range(400):
            if done(shown := screen()):
                return shown
            time.sleep(0.05)
        raise AssertionError("\n".join(screen()))

    environment = {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
    given = " ".join(f"{k}={v}" for k, v in environment.items())
    tmux("new-session", "-d", "-x", "110", "-y", "40", f"env -u NO_COLOR {given} {watch}; echo ended $?; sleep 60")
    try:
        shown = until(lambda rows: all(any(f"#{n} " in row for row in rows) for n in (1, 2, 3, 4)))
        assert sum("(ms, median;" in row for row in shown) == 1
        tmux("send-keys", "C-c")
        shown = until(lambda rows: any(row.startswith("ended") for row in rows))
        assert "ended 0" in shown
        assert sum("(ms, median;" in row for row in shown) == 1
        assert {json.loads(line)["tick"] for line in lines.read_text().splitlines()} >= {1, 2, 3, 4}
    finally:
        tmux("kill-server")
