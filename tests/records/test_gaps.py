"""Time that no phase covers."""

from __future__ import annotations

import pytest

from netdiag.records.gaps import gaps
from tests.support.fabricated import T0, exchange, ns


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        ("send 1 | wait 5", []),
        ("- 2 | send 1 | - 3 | wait 5 | - 4", [(0, 2), (3, 6), (11, 15)]),
        ("- 7", [(0, 7)]),
    ],
)
def test_before_between_and_behind_phases(phases: str, expected: list[tuple[int, int]]) -> None:
    found = gaps(exchange(phases))
    assert found == [(T0 + ns(a), T0 + ns(b)) for a, b in expected]
    assert sum(b - a for a, b in found) == exchange(phases).unattributed_ns
