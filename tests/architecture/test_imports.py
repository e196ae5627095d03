"""What starting costs: told by the modules that are loaded, which is the same on every machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


NEVER_FOR_CLEAR_TEXT = {
    *("netdiag.protocols.tls.observe", "netdiag.protocols.tls.key_schedule", "netdiag.protocols.tls.regular"),
    *("netdiag.analysis.keyless", "netdiag.analysis.sealed", "netdiag.analysis.unopened"),
    *("netdiag.protocols.quic", "netdiag.protocols.dns.message", "netdiag.protocols.socks", "netdiag.protocols.http1"),
    *("netdiag.records.lanes", "netdiag.records.command", "netdiag.stats.comparison", "netdiag.export.schema"),
    *("cryptography", "hashlib", "hmac", "numpy.ma", "statistics", "decimal", "socket", "tempfile", "concurrent"),
    *(
        "rich.console",
        "rich.progress",
        "scapy",
        "pyshark",
        "matplotlib",
        "httpx",
        "polars",
        "pandas",
        "scipy",
        "asyncio",
    ),
}
CAPTURES = Path(__file__).parents[2] / "captures"


def modules_of(arguments: list[str]) -> set[str]:
    """Every module, and every package of one, that a command loads."""
    code = f"import sys; sys.argv = ['netdiag', *{arguments!r}]\nfrom netdiag.cli.main import main\nmain()"
    report = (
        f"import sys\ntry:\n  exec({code!r})\nexcept SystemExit:\n  pass\nprint('\\n' + ' '.join(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_a_small_capture_in_clear_text_loads_what_it_needs() -> None:
    loaded = modules_of(["analyze", str(CAPTURES / "clear-text-h2.pcapng")])
    assert loaded & NEVER_FOR_CLEAR_TEXT == set()
    assert "netdiag.protocols.http2.frame_by_frame" in loaded


def test_a_capture_loads_the_decoders_of_what_it_speaks() -> None:
    loaded = modules_of(["analyze", str(CAPTURES / "built-dns-h1.pcapng")])
    assert {"netdiag.protocols.dns.message", "netdiag.protocols.http1"} <= loaded
    assert not {"netdiag.protocols.http2.frame_by_frame", "netdiag.protocols.quic", "netdiag.protocols.socks"} & loaded
