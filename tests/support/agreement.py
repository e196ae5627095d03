"""How often netdiag and an independent witness say the same, field by field."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest

LEAST = 0.995


@dataclass
class Field:
    """Agreement on one field."""

    same: int = 0
    named: int = 0
    """Differences that are known, with their reason; they count as neither."""
    different: list[str] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Share of rows that agree."""
        return self.same / max(1, self.same + len(self.different))


def check_agreement(title: str, fields: Mapping[str, Field], capsys: pytest.CaptureFixture[str]) -> None:
    """Prints every field, and holds each to ``LEAST``."""
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(_table(title, fields)) + "\n")
    assert not {name: one.different for name, one in fields.items() if one.rate < LEAST}


def _table(title: str, fields: Mapping[str, Field]) -> Iterator[str]:
    for name, one in sorted(fields.items()):
        counts = f"{one.same:4} same, {one.named} named, {len(one.different)} different"
        yield f"  {title} {name:22} {counts}: {one.rate:.2%}"
        yield from (f"      {difference}" for difference in one.different[:20])
