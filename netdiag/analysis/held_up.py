"""How much of an exchange its octets, or their sender, were held up by loss and by windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from netdiag.plain import plain
from netdiag.records.timing import Phase, PhaseName
from netdiag.wire.distinct import distinct
from netdiag.wire.receipts import Receipts
from netdiag.wire.stalls import StallKind, Stalls
from netdiag.wire.tables import NONE, Bool, Int64

CLIENT, SERVER = 0, 1
_LOSS = (StallKind.LOSS, StallKind.LOSS_BEYOND)
"""Octets that had arrived waited for lost ones; octets were lost beyond the capture point and came as much later to the other side."""
_AT_MOST = (*_LOSS, StallKind.UNSEEN_LOSS)
_MOST_PACKETS = 20
_WINDOW = (StallKind.ZERO_WINDOW, StallKind.FULL_WINDOW)


@plain(frozen=True, slots=True)
class Witnessed:
    """What the packets show of an interval."""

    ns: int
    """Time of it that was spent so; what overlaps is counted once."""
    ends_it: bool
    """The interval ended when this did."""
    packets: tuple[int, ...]


class HeldUp:
    """The stalls of one connection; both directions together, and what overlaps is counted once."""

    __slots__ = ("_none", "_receipts", "_stalls")

    def __init__(self, stalls: Stalls, connection_id: int, receipts: Receipts) -> None:
        wanted = np.array((connection_id, connection_id + 1), stalls.connection.dtype)
        low, high = np.searchsorted(stalls.connection, wanted).tolist()
        self._stalls = stalls.take(slice(low, high))
        self._none = low == high
        self._receipts = receipts.of(connection_id)

    @property
    def never(self) -> bool:
        """Nothing was held up, ever."""
        return bool(self._none)

    def loss_ns(self, started_at: int, ended_at: int) -> int:
        """Time in the interval during which octets waited for lost ones, or were themselves lost on their way from the capture point."""
        return self._overlap_ns(_LOSS, started_at, ended_at)

    def laid_over(self, phases: Sequence[Phase]) -> tuple[Phase, ...]:
        """The phases, each with how much of it is loss, and how much its sender was stopped by its peer's window."""
        return tuple(self._laid_over(phase, phase.started_at, phase.ended_at) for phase in phases)

    def _laid_over(self, phase: Phase, started_at: int, ended_at: int) -> Phase:
        client_sends = phase.name in (PhaseName.SEND, PhaseName.CONTINUE)
        windows = self.request_windows if client_sends else self.answer_windows
        return replace(
            phase,
            loss_ns=self.loss_ns(started_at, ended_at),
            loss_hi_ns=self.loss_hi_ns(started_at, ended_at),
            window_ns=windows(started_at, ended_at).ns,
        )

    def loss_hi_ns(self, started_at: int, ended_at: int) -> int | None:
        """With the silences that the sender's packet count alone tells from pauses: their loss cost at most this. None without any."""
        unseen = self._overlap_ns((StallKind.UNSEEN_LOSS,), started_at, ended_at)
        return self._overlap_ns(_AT_MOST, started_at, ended_at) if unseen else None

    def window_ns(self, started_at: int, ended_at: int) -> int:
        """Time in the interval during which a sender was stopped by a full or zero window."""
        return self._overlap_ns(_WINDOW, started_at, ended_at)

    def asked_again_until(self, at: int) -> int:
        """The last transmission, as far as one was needed, of what the client sent at ``at``; ``at`` itself where nothing was lost then."""
        if self._none:
            return at
        again = self._is(CLIENT, StallKind.LOSS_BEYOND) & (self._stalls.started_at <= at) & (self._stalls.ended_at > at)
        return int(self._stalls.ended_at[again].max(initial=at))

    def acknowledged_at(self, sent_at: int) -> tuple[int, bool] | None:
        """When the server first acknowledged what the client sent at ``sent_at``, and whether without data of its own; None if it did not."""
        places = np.flatnonzero(self._receipts.sent_at == sent_at)
        if not places.size:
            return None
        return int(self._receipts.acked_at[places[-1]]), bool(self._receipts.bare[places[-1]])

    def answer_delayed_ns(self, seen_at: int, at: int) -> int:
        """How long octets of the server that were seen at ``seen_at`` and deliverable at ``at`` waited for lost ones, or with them others."""
        if self._none:
            return 0
        hole = self._is(SERVER, StallKind.LOSS, StallKind.REORDERING) & (self._stalls.ended_at == at)
        since = int(self._stalls.started_at[hole].min(initial=min(seen_at, at)))
        return self.answer_holes(since, at).ns if since < at else 0

    def request_windows(self, started_at: int, ended_at: int) -> Witnessed:
        """The client could not send: the server did not read, so its window was closed or full."""
        closed = self._is(SERVER, StallKind.ZERO_WINDOW) | self._is(CLIENT, StallKind.FULL_WINDOW)
        return self._witnessed(closed, started_at, ended_at)

    def answer_holes(self, started_at: int, ended_at: int) -> Witnessed:
        """Octets of the server that had arrived but waited for others."""
        return self._witnessed(self._is(SERVER, StallKind.LOSS, StallKind.REORDERING), started_at, ended_at)

    def answer_windows(self, started_at: int, ended_at: int) -> Witnessed:
        """The server could not send: the client did not read, so its window was closed or full."""
        closed = self._is(CLIENT, StallKind.ZERO_WINDOW) | self._is(SERVER, StallKind.FULL_WINDOW)
        return self._witnessed(closed, started_at, ended_at)

    def answer_unseen_losses(self, started_at: int, ended_at: int) -> Witnessed:
        """Packets of the server that it numbered but that never came, their octets coming after silence as if new."""
        return self._witnessed(self._is(SERVER, StallKind.UNSEEN_LOSS), started_at, ended_at)

    def _is(self, direction: int, *kinds: StallKind) -> Bool:
        found: Bool = (self._stalls.direction == direction) & np.isin(self._stalls.kind, kinds)
        return found

    def _witnessed(self, chosen: Bool, started_at: int, ended_at: int) -> Witnessed:
        rows = self._stalls.take(chosen & (self._stalls.started_at < ended_at) & (self._stalls.ended_at > started_at))
        begins, ends = np.maximum(rows.started_at, started_at), np.minimum(rows.ended_at, ended_at)
        packets = distinct(np.concatenate((rows.first_packet, rows.last_packet)))
        return Witnessed(
            ns=_union_ns(begins, ends),
            ends_it=bool((rows.ended_at == ended_at).any()),
            packets=tuple(packets[packets != NONE].tolist()[:_MOST_PACKETS]),
        )

    def _overlap_ns(self, kinds: tuple[StallKind, ...], started_at: int, ended_at: int) -> int:
        if self._none:
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
