"""The same capture gives the same octets, whatever the locale, the time zone, the hash seed and the width of the moon."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CAPTURES = Path(__file__).parents[2] / "captures"
SURROUNDINGS = (
    {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC"},
    {"PYTHONHASHSEED": "1", "LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Kathmandu", "LANG": "de_DE.UTF-8"},
    {"PYTHONHASHSEED": "4711", "LC_ALL": "tr_TR.UTF-8", "TZ": "America/St_Johns", "MPLBACKEND": "svg"},
)


def octets(name: str, surroundings: dict[str, str], folder: Path) -> tuple[bytes, ...]:
    folder.mkdir()
    environment = {**os.environ, "PYTHONUTF8": "1", "COLUMNS": "100", **surroundings}
    base = [sys.executable, "-m", "netdiag", "analyze", str(CAPTURES / f"{name}.pcapng")]
    outputs = [part for ending in ("svg", "png", "json") for part in ("-o", str(folder / f"x.{ending}"))]
    text = subprocess.run([*base, *outputs], capture_output=True, env=environment, check=False, timeout=120)
    assert text.returncode in (0, 1), text.stderr
    return (text.stdout, *((folder / f"x.{ending}").read_bytes() for ending in ("svg", "png", "json")))


@pytest.mark.parametrize("name", ["h2-several-streams"])
def test_report_document_and_pictures(name: str, tmp_path: Path) -> None:
    first, *others = (octets(name, around, tmp_path / str(i)) for i, around in enumerate(SURROUNDINGS))
    assert all(other == first for other in others)
    assert all(first)
