"""What a second witness of the same capture says, beside netdiag."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One value on which the witnesses differ."""

    field: str
    where: str
    netdiag: str
    witness: str
    reason: str | None
    """Why this kind of difference is expected; None when it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The whole comparison."""

    witness: str
    """Name and version of the other program."""
    agreed: Mapping[str, int]
    """Values that agree, by field."""
    differences: Sequence[Difference]

    @property
    def unexplained(self) -> list[Difference]:
        """Differences of no known kind."""
        return [d for d in self.differences if d.reason is None]

    def rates(self) -> dict[str, tuple[int, int]]:
        """Per field: values that agree, values compared."""
        differ = Counter(d.field for d in self.differences)
        names = sorted({*self.agreed, *differ})
        return {name: (self.agreed.get(name, 0), self.agreed.get(name, 0) + differ[name]) for name in names}
