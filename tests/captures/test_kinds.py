"""Captures of every kind: what netdiag prints about each is written beside it.

``pytest tests/captures --regenerate`` makes the captures that are not drawn at random, and all texts, anew; review the diff.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from netdiag.cli.main import cli
from tests.captures.kinds.every import KINDS
from tests.support.golden import Golden
from tests.support.tools import needs_tshark

FOLDER = Path(__file__).parents[2] / "captures" / "kinds"
LARGEST_BYTES = 100_000
OTHERWISE: dict[str, str] = {}
"""Where tshark does not say the same, and why."""


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reports name files as they were given: without a folder."""
    monkeypatch.chdir(FOLDER)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")


def says(*arguments: str) -> str:
    """What a command prints."""
    return CliRunner().invoke(cli, arguments).output


@pytest.mark.parametrize("name", KINDS)
def test_the_file_is_what_the_builder_makes(name: str, regenerate: bool) -> None:
    kind, path = KINDS[name], FOLDER / name
    if regenerate and not (kind.drawn and path.exists()):
        path.write_bytes(kind.make())
    if not kind.drawn:
        assert path.read_bytes() == kind.make(), "made anew by --regenerate"
    assert path.stat().st_size < LARGEST_BYTES


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", KINDS)
def test_says_what_it_said(name: str, regenerate: bool) -> None:
    text = f"{says('analyze', name)}\n{says('connections', name)}"
    Golden(FOLDER, regenerate=regenerate).check(f"{name}.txt", text)


@needs_tshark
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", sorted(set(KINDS) - set(OTHERWISE)))
def test_tshark_agrees(name: str) -> None:
    result = CliRunner().invoke(cli, ["verify", name])
    assert result.exit_code == 0, result.output


def test_each_is_described() -> None:
    described = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [kind.file for kind in KINDS.values() if f"| `{kind.file}` | {kind.shows} |" not in described] == []
    there = {path.name for path in FOLDER.iterdir() if path.suffix not in (".txt", ".md")}
    assert there == set(KINDS)
