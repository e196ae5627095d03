"""The folder of public captures, which is not part of the repository: found by ``NETDIAG_PUBLIC_CAPTURES`` or beside the checkout."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest


def folder() -> Path:
    """Where the captures are; the calling test is skipped when they are absent."""
    named = os.environ.get("NETDIAG_PUBLIC_CAPTURES")
    path = Path(named) if named else Path(__file__).resolve().parents[2].parent / "shared" / "captures-public"
    if not (path / "truth.jsonl").is_file():
        pytest.skip("the public captures are not here (set NETDIAG_PUBLIC_CAPTURES): nothing is compared with them")
    return path


@lru_cache(maxsize=1)
def index() -> dict[str, dict[str, str]]:
    """Rows of INDEX.tsv by path."""
    with (folder() / "INDEX.tsv").open(newline="") as file:
        return {row["path"]: row for row in csv.DictReader(file, delimiter="\t")}


def truths() -> Iterator[dict[str, Any]]:
    """The documents of truth.jsonl."""
    with (folder() / "truth.jsonl").open() as file:
        for line in file:
            yield json.loads(line)


def keylog_of(path: str) -> Path | None:
    """The key log that belongs to a capture; None where it has none (or carries it inside)."""
    name = index()[path]["keylog"]
    return folder() / name if name.endswith(".keys") else None


def epoch_ns(truth: dict[str, Any]) -> int:
    """``t0`` of a truth document in ns since the epoch."""
    seconds, _, fraction = str(truth["t0"]).partition(".")
    return int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9])
