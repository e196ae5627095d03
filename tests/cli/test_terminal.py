from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

from netdiag.cli.console import wants_colour
from netdiag.cli.main import COMMANDS, cli

Run = Callable[..., Result]
NETDIAG = [sys.executable, "-m", "netdiag"]
PLAIN = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONIOENCODING")}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "choice", "environment", "wanted"),
    [
        (Terminal(), "auto", {"TERM": "xterm"}, True),
        (io.StringIO(), "auto", {"TERM": "xterm"}, False),
        (Terminal(), "auto", {"TERM": "dumb"}, False),
        (Terminal(), "auto", {"NO_COLOR": "1"}, False),
        (Terminal(), "auto", {"NO_COLOR": ""}, True),
        (io.StringIO(), "auto", {"FORCE_COLOR": "1"}, True),
        (io.StringIO(), "auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (io.StringIO(), "always", {"NO_COLOR": "1"}, True),
        (Terminal(), "never", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_rules(stream: io.StringIO, choice: str, environment: dict[str, str], wanted: bool) -> None:
    assert wants_colour(stream, choice, environment) is wanted


def test_a_pipe_gets_no_colour_and_80_columns(good: Path) -> None:
    out = subprocess.run(
        [*NETDIAG, "analyze", str(good)], capture_output=True, check=True, env=PLAIN, timeout=60
    ).stdout.decode()
    assert "\x1b" not in out
    assert max(len(line) for line in out.splitlines()) <= 80


def test_colour_when_forced(run: Run, good: Path) -> None:
    assert "\x1b[" in run("analyze", good, "--color=always").stdout
    assert "\x1b[" not in run("analyze", good, "--color=never").stdout


def test_ascii_where_the_encoding_has_no_blocks(good: Path) -> None:
    environment = {**PLAIN, "PYTHONIOENCODING": "ascii"}
    out = subprocess.run(
        [*NETDIAG, "analyze", str(good)], capture_output=True, check=True, env=environment, timeout=60
    ).stdout
    out.decode("ascii")
    assert b"##" in out


@pytest.mark.parametrize("width", [60, 140])
def test_columns_are_obeyed(run: Run, good: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert 0.8 * width < max(len(line) for line in run("analyze", good).stdout.splitlines()) <= width


def test_on_a_real_terminal_there_is_colour_and_its_width(good: Path) -> None:
    import fcntl
    import struct
    import termios

    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    environment = {**PLAIN, "TERM": "xterm-256color"}
    process = subprocess.Popen([*NETDIAG, "analyze", str(good)], stdout=secondary, stderr=secondary, env=environment)
    os.close(secondary)
    shown = b""
    while True:
        try:
            part = os.read(primary, 65_536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(primary)
    assert process.wait(timeout=60) == 0
    assert b"\x1b[" in shown
    assert b"evidence L2" in shown


def test_progress_stays_away_from_pipes_and_from_quick_work(good: Path) -> None:
    done = subprocess.run([*NETDIAG, "analyze", str(good)], capture_output=True, check=True, env=PLAIN, timeout=60)
    assert done.stderr == b""


def test_progress_appears_on_a_terminal_after_its_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    from netdiag.cli import progress

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "PATIENCE_S", 0.05)
    with progress.progress("big.pcap") as report:
        report(10, 100)
        assert terminal.getvalue() == ""
        time.sleep(0.06)
        report(50, 100)
        report(100, 100)
    assert "big.pcap" in terminal.getvalue()
    silent = Terminal()
    monkeypatch.setattr(sys, "stderr", silent)
    with progress.progress("big.pcap", quiet=True) as report:
        time.sleep(0.06)
        report(50, 100)
    assert silent.getvalue() == ""


HEAVY = (
    "rich",
    "numpy",
    "scipy",
    "scapy",
    "pyshark",
    "matplotlib",
    "httpx",
    "httpcore",
    "h2",
    "polars",
    "pandas",
    "cryptography",
    "jsonschema",
)


def loaded_by(code: str) -> set[str]:
    """Top-level packages in sys.modules after ``code``."""
    script = f"import sys\n{code}\nprint('\\n'.join(sorted({{m.partition('.')[0] for m in sys.modules}})))"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True, timeout=60).stdout
    return set(out.split())


def test_help_loads_click_and_nothing_heavy() -> None:
    code = "from netdiag.cli.main import cli\ntry: cli.main(['--help'])\nexcept SystemExit: pass"
    assert not loaded_by(code) & set(HEAVY)


def test_importing_netdiag_loads_nothing_heavy() -> None:
    assert not loaded_by("import netdiag") & {*HEAVY, "click"}


def test_the_command_analyze_loads_no_statistics_library(good: Path) -> None:
    """scipy.stats alone takes longer than the analysis of a small file."""
    code = f"from netdiag.cli.main import cli\ntry: cli.main(['analyze', {str(good)!r}])\nexcept SystemExit: pass"
    assert not loaded_by(code) & {"scipy", "matplotlib"}
    code = f"from netdiag.cli.main import cli\ntry: cli.main(['analyze', {str(good)!r}, '--jsonl'])\nexcept SystemExit: pass"
    assert not loaded_by(code) & {"scipy", "matplotlib", "rich"}


def test_analysing_a_file_loads_no_capture_backend_and_no_pictures(good: Path) -> None:
    code = f"import netdiag; netdiag.analyze({str(good)!r})"
    assert not loaded_by(code) & {"scapy", "pyshark", "matplotlib", "httpx", "polars", "pandas", "rich", "click"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_fits_a_page(run: Run, name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: netdiag " + name)
    assert len(result.stdout.splitlines()) <= 40
    assert max(len(line) for line in result.stdout.splitlines()) <= 80
    if "--help-all" in result.stdout:
        everything = run(name, "--help-all").stdout
        assert len(everything.splitlines()) > len(result.stdout.splitlines())
        assert max(len(line) for line in everything.splitlines()) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_no_option_is_missing_from_the_help(run: Run, name: str) -> None:
    shown = run(name, "--help").stdout
    if "--help-all" in shown:
        shown = run(name, "--help-all").stdout
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert any(option in shown for option in parameter.opts), parameter.name


def test_the_list_of_commands_is_complete(run: Run) -> None:
    shown = run("--help").stdout
    assert all(f"\n  {name} " in shown for name in COMMANDS)
    assert "Exit codes: 0 ok" in shown


def test_a_near_miss_is_suggested(run: Run) -> None:
    assert "Did you mean 'analyze'?" in run("analyse").stderr


def test_schema_is_json(run: Run) -> None:
    assert json.loads(run("schema").stdout)["title"] == "netdiag analysis"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(run: Run, shell: str) -> None:
    assert "_NETDIAG_COMPLETE" in run("completion", shell).stdout


def test_completion_knows_commands_and_options() -> None:
    environment = {**PLAIN, "_NETDIAG_COMPLETE": "bash_complete", "COMP_WORDS": "netdiag ana", "COMP_CWORD": "1"}
    out = subprocess.run(
        [sys.executable, "-m", "netdiag"], capture_output=True, env=environment, text=True, check=False, timeout=60
    ).stdout
    assert "analyze" in out


def test_doctor_says_what_is_possible(run: Run) -> None:
    result = run("doctor")
    assert result.exit_code in (0, 69)
    for name in ("dumpcap", "scapy", "pyshark", "evidence up to L"):
        assert name in result.stdout


def test_version(run: Run) -> None:
    import netdiag

    assert run("--version").stdout == f"netdiag {netdiag.__version__}\n"


def test_cli_is_the_group() -> None:
    assert cli.list_commands(None) == list(COMMANDS)  # type: ignore[arg-type]
