"""The arrows between layers, checked by import-linter over the whole package."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "netdiag"


def test_imports_go_one_way() -> None:
    pytest.importorskip("importlinter", reason="import-linter is not installed: the layer contract is not checked")
    code = "from importlinter.cli import lint_imports; import sys; sys.exit(lint_imports())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]


PURE = ("records", "wire", "protocols", "analysis", "diagnosis", "stats")
"""Values in, values out: these open nothing, read no clock and start nothing."""
FORBIDDEN = {
    "socket",
    "time",
    "threading",
    "subprocess",
    "asyncio",
    "select",
    "ssl",
    "urllib.request",
    "http.client",
    "tempfile",
}
TEXT_OF_ADDRESSES = {"inet_ntop", "inet_pton", "AF_INET", "AF_INET6"}
"""What a pure layer may use of ``socket``."""


def uses_socket_for_text_only(path: Path) -> bool:
    """Whether nothing but address conversion is taken from ``socket``."""
    used = {
        node.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "socket"
    }
    return used <= TEXT_OF_ADDRESSES


def imported(path: Path) -> set[str]:
    """Top-level modules that a file imports (a submodule under its full name too)."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("layer", PURE)
def test_pure_layers_do_no_input_output_and_read_no_clock(layer: str) -> None:
    offences = [
        (str(path.relative_to(PACKAGE)), name)
        for path in sorted((PACKAGE / layer).rglob("*.py"))
        for name in sorted(imported(path) & FORBIDDEN)
        if not (name == "socket" and uses_socket_for_text_only(path))
    ]
    assert offences == []


def test_pure_layers_open_no_file() -> None:
    calls = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for layer in PURE
        for path in sorted((PACKAGE / layer).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("open", "print", "input")
    ]
    assert calls == []


THIRD_PARTIES = {
    "scapy": ("capture/",),
    "pyshark": ("capture/", "verify/"),
    "matplotlib": ("plot/",),
    "rich": ("cli/", "export/"),
    "click": ("cli/",),
    "httpx": ("probe/",),
    "httpcore": ("probe/",),
}


@pytest.mark.parametrize("library", THIRD_PARTIES)
def test_third_parties_stay_behind_their_door(library: str) -> None:
    inside = [
        str(path.relative_to(PACKAGE))
        for path in sorted(PACKAGE.rglob("*.py"))
        if any(name.split(".")[0] == library for name in imported(path))
    ]
    assert [path for path in inside if not path.startswith(THIRD_PARTIES[library])] == []
