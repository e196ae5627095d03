"""Requests whose body was held back until 100 (Continue), told from record lengths (RFC 9110 section 10.1.1)."""

from __future__ import annotations

import numpy as np

from netdiag.plain import plain
from netdiag.wire.tables import NONE, Int64, Table

CONTINUE_BYTES = (16, 17, 25)
"""``HTTP/1.1 100`` and nothing else, with and without its reason phrase."""


@plain(frozen=True, slots=True, kw_only=True)
class HeldBack(Table):
    """One row for each 100 (Continue), in the order of sessions and time."""

    session: Int64
    head_last_at: Int64
    """Last octet sent before it."""
    head_last_packet: Int64
    continued_at: Int64
    continued_packet: Int64
    body_first_at: Int64
    """First octet sent after it."""
    body_first_packet: Int64


def nothing_held_back() -> HeldBack:
    """No rows."""
    none = np.empty(0, np.int64)
    return HeldBack(**dict.fromkeys(HeldBack.__dataclass_fields__, none))


def of_each_turn(held: HeldBack, session: Int64, first_at: Int64, last_at: Int64) -> Int64:
    """Row in ``held`` for each turn (by session and time) whose request it is part of; NONE for all others. The first, where a turn is
    several requests."""
    rows = np.full(len(session), NONE, np.int64)
    asked = np.flatnonzero(first_at != NONE)
    if not len(held) or not len(asked):
        return rows
    times = np.unique(np.concatenate([first_at[asked], held.head_last_at]))
    begins = session[asked].astype(np.int64) * len(times) + np.searchsorted(times, first_at[asked])
    at = held.session * len(times) + np.searchsorted(times, held.head_last_at)
    place = np.searchsorted(begins, at, "right") - 1
    turn = asked[np.maximum(place, 0)]
    inside = (place >= 0) & (session[turn] == held.session) & (held.body_first_at <= last_at[turn])
    rows[turn[inside][::-1]] = np.flatnonzero(inside)[::-1]
    return rows
