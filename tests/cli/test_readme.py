from __future__ import annotations

import re
from pathlib import Path

import pytest

import netdiag
from netdiag.export.text import report

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
_PHASE = re.compile(r"^  ([a-z]+) +~?([\d.]+) ", re.MULTILINE)


def test_the_report_that_the_readme_shows_is_what_netdiag_prints() -> None:
    """Phases and numbers, not each word beside them."""
    name, shown = re.search(r"\$ netdiag analyze (captures/\S+)\n(.*?)```", README, re.DOTALL).groups()  # type: ignore[union-attr]
    printed = "\n".join(line.plain for line in report(netdiag.analyze(ROOT / name), width=112))
    assert len(_PHASE.findall(shown)) >= 8
    assert _PHASE.findall(shown) == _PHASE.findall(printed)


def test_the_python_that_the_readme_shows_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.search(r"```python\n(import netdiag\n.*?)analysis.to_polars", README, re.DOTALL).group(1)  # type: ignore[union-attr]
    capture = ROOT / "captures" / "h1.pcapng"
    code = code.replace('"customer.pcapng", keylog="keys.txt"', repr(str(capture)))
    exec(compile(code, "README", "exec"), {})
    assert "GET /v1/models tcp 0.0 tls 3.5" in capsys.readouterr().out


def test_every_command_that_the_readme_shows_exists() -> None:
    from netdiag.cli.main import COMMANDS

    used = set(re.findall(r"(?:^\$ |\| |`)netdiag (\w+)", README, re.MULTILINE))
    assert used
    assert used <= COMMANDS.keys()
