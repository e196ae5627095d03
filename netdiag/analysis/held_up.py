"""How much of an exchange its octets, or their sender, were held up by loss and by windows."""

from __future__ import annotations

from typing import Self

import numpy as np

from netdiag.wire.stalls import StallKind, Stalls
from netdiag.wire.tables import Int64

_LOSS = (StallKind.LOSS,)
_WINDOW = (StallKind.ZERO_WINDOW, StallKind.FULL_WINDOW)


class HeldUp:
    """The stalls of one connection; both directions together, and what overlaps is counted once."""

    def __init__(self, stalls: Stalls, connection_id: int) -> None:
        wanted = np.array((connection_id, connection_id + 1), stalls.connection.dtype)
        low, high = np.searchsorted(stalls.connection, wanted).tolist()
        self._stalls = stalls.take(slice(low, high))

    @classmethod
    def of(cls, stalls: Stalls, connection_id: int) -> Self | None:
        """None for a connection that nothing held up."""
        found = cls(stalls, connection_id)
        return found if len(found._stalls) else None

    def loss_ns(self, started_at: int, ended_at: int) -> int:
        """Time in the interval during which octets waited for a hole to be filled."""
        return self._overlap_ns(_LOSS, started_at, ended_at)

    def window_ns(self, started_at: int, ended_at: int) -> int:
        """Time in the interval during which a sender was stopped by a full or zero window."""
        return self._overlap_ns(_WINDOW, started_at, ended_at)

    def _overlap_ns(self, kinds: tuple[StallKind, ...], started_at: int, ended_at: int) -> int:
        if not len(self._stalls):
            return 0
        chosen = np.isin(self._stalls.kind, kinds)
        begins = np.maximum(self._stalls.started_at[chosen], started_at)
        ends = np.minimum(self._stalls.ended_at[chosen], ended_at)
        return _union_ns(begins[ends > begins], ends[ends > begins])


def _union_ns(begins: Int64, ends: Int64) -> int:
    total = covered_to = 0
    for begin, end in sorted(zip(begins.tolist(), ends.tolist(), strict=True)):
        total += max(0, end - max(begin, covered_to))
        covered_to = max(covered_to, end)
    return total
