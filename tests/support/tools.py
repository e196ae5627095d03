"""External witnesses and the folder of public captures; tests that need an absent one are skipped with the reason."""

from __future__ import annotations

import functools
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def needs_tool(name: str, marker: str) -> Any:
    """A decorator: the marker, and a skip when the program is not installed."""
    missing = shutil.which(name) is None
    skip = pytest.mark.skipif(missing, reason=f"{name} is not installed: this test has no independent witness")
    mark = getattr(pytest.mark, marker)

    def decorate(function: Any) -> Any:
        return mark(skip(function))

    return decorate


needs_tshark = needs_tool("tshark", "tshark")
needs_capinfos = needs_tool("capinfos", "tshark")
needs_editcap = needs_tool("editcap", "tshark")


def public_captures() -> Path | None:
    """The folder of public captures with its truth, or None."""
    named = os.environ.get("NETDIAG_PUBLIC_CAPTURES")
    folder = Path(named) if named else ROOT.parent / "shared" / "captures-public"
    return folder if (folder / "truth.jsonl").is_file() else None


@functools.cache
def public_truth() -> list[dict[str, Any]]:
    """What tshark says about each public capture; empty when they are absent."""
    folder = public_captures()
    if folder is None:
        return []
    return [json.loads(line) for line in (folder / "truth.jsonl").read_text().splitlines()]


def needs_public_captures(function: Any) -> Any:
    """The marker ``public``, and a skip when the folder is not there."""
    reason = "no folder of public captures (set NETDIAG_PUBLIC_CAPTURES)"
    return pytest.mark.public(pytest.mark.skipif(public_captures() is None, reason=reason)(function))
