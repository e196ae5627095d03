"""What starting costs: told by the modules that are loaded, which is the same on every machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    *("scapy", "pyshark", "matplotlib", "httpx", "httpcore", "h2", "h11", "hpack", "polars", "pandas", "pyarrow"),
    *("numpy", "scipy", "rich", "cryptography", "asyncio", "zstandard", "lz4"),
}


def loaded_by(code: str) -> set[str]:
    """Top-level modules in a fresh interpreter after ``code``."""
    report = (
        f"import sys\ntry:\n  exec({code!r})\nexcept SystemExit:\n  pass\nprint('\\n' + ' '.join(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.splitlines()[-1].split()}


def test_import_netdiag_loads_nothing_but_itself() -> None:
    assert loaded_by("import netdiag") & (HEAVY | {"click"}) == set()


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["analyze", "--help"], ["probe", "--help"]])
def test_help_and_version_load_click_only(arguments: list[str]) -> None:
    code = f"import sys; sys.argv = ['netdiag', *{arguments!r}]\nfrom netdiag.cli.main import main\nmain()"
    assert loaded_by(code) & HEAVY == set()


def test_analysing_loads_no_capture_library_and_no_picture() -> None:
    unwanted = {"scapy", "pyshark", "matplotlib", "httpx", "httpcore", "polars", "pandas", "asyncio"}
    code = "import netdiag; netdiag.analyze"
    assert loaded_by(code) & (unwanted - {"asyncio"}) == set()
