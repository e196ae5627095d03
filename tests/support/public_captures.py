"""What belongs to the public captures: their index, their key logs, the time their truth counts from."""

from __future__ import annotations

import csv
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.support.tools import public_captures


def folder() -> Path:
    """Where they are; only for tests marked with ``needs_public_captures``."""
    path = public_captures()
    assert path is not None
    return path


@lru_cache(maxsize=1)
def index() -> dict[str, dict[str, str]]:
    """Rows of INDEX.tsv by path."""
    with (folder() / "INDEX.tsv").open(newline="") as file:
        return {row["path"]: row for row in csv.DictReader(file, delimiter="\t")}


def keylog_of(path: str) -> Path | None:
    """The key log that belongs to a capture; None where it has none (or carries it inside)."""
    name = index()[path]["keylog"]
    return folder() / name if name.endswith(".keys") else None


def epoch_ns(truth: dict[str, Any]) -> int:
    """``t0`` of a truth document in ns since the epoch."""
    seconds, _, fraction = str(truth["t0"]).partition(".")
    return int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9])
