"""How and by whom a connection was ended."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from netdiag.plain import plain
from netdiag.wire.flows import Flows
from netdiag.wire.tables import NONE, Bool, Int64
from netdiag.wire.tcp_flags import FIN, RST
from netdiag.wire.transmissions import transmissions

GIVEN_UP_NS = 1_000_000_000
"""A SYN without any answer for this long (the first retransmission time-out, RFC 6298 section 2) failed, if no other came after it."""


class CloseReason(IntEnum):
    """``records.Connection.close_reason``."""

    OPEN = 0
    FIN = 1
    RESET = 2
    REFUSED = 3
    SYN_TIMEOUT = 4

    @property
    def text(self) -> str | None:
        """``fin``, ``syn-timeout`` …; None while open."""
        return None if self is CloseReason.OPEN else self.name.lower().replace("_", "-")


@plain(frozen=True, slots=True, kw_only=True)
class Close:
    """Rows of ``Flows.packets``, NONE where there is none. ``fin_row`` and ``rst_row`` per direction, the rest per connection."""

    fin_row: Int64
    rst_row: Int64
    row: Int64
    """The first FIN or RST."""
    reason: Int64
    """A ``CloseReason``."""


def close(flows: Flows) -> Close:
    """Of every connection."""
    fin_row = _first_by_direction(flows, np.flatnonzero((flows.packets.flags & FIN) != 0))
    rst_row = _first_by_direction(flows, np.flatnonzero((flows.packets.flags & RST) != 0))
    candidates = np.concatenate((fin_row.reshape(-1, 2), rst_row.reshape(-1, 2)), axis=1)
    number = np.where(candidates == NONE, np.iinfo(np.int64).max, flows.packets.number[candidates])
    chosen = number.argmin(axis=1)
    row = candidates[np.arange(len(candidates)), chosen]
    reason = np.where(row == NONE, CloseReason.OPEN, np.where(chosen < 2, CloseReason.FIN, CloseReason.RESET))
    handshake = transmissions(flows).handshake
    unanswered = (handshake.syn_row != NONE) & (handshake.syn_ack_row == NONE)
    loaded = np.bincount(flows.connection[flows.sequence.occupies], minlength=flows.count) > 0
    reason[unanswered & ~loaded & (chosen == 3) & (row != NONE)] = CloseReason.REFUSED
    reason[unanswered & (row == NONE) & _gave_up(flows)] = CloseReason.SYN_TIMEOUT
    return Close(fin_row=fin_row, rst_row=rst_row, row=row, reason=reason)


def _gave_up(flows: Flows) -> Bool:
    """The client sent nothing but SYNs, the server nothing at all, and the capture went on long enough after the last SYN."""
    counts = np.diff(flows.starts).reshape(-1, 2)
    handshake, at = transmissions(flows).handshake, flows.packets.captured_at
    only_syns = (handshake.syns > 0) & (counts[:, 1] == 0) & (flows.sequence.occupies.size > 0)
    last = flows.starts[1::2] - 1
    ends_at = at.max(initial=0) if flows.last_at is None else flows.last_at
    silent = ends_at - at[np.maximum(last, 0)] >= GIVEN_UP_NS
    copies = np.bincount(flows.connection[transmissions(flows).copies], minlength=flows.count)
    return np.asarray(only_syns & (counts[:, 0] == handshake.syns + copies) & (silent | (handshake.syns > 1)))


def _first_by_direction(flows: Flows, rows: Int64) -> Int64:
    out = np.full(len(flows.starts) - 1, NONE, np.int64)
    out[flows.stream[rows[::-1]]] = rows[::-1]
    return out
