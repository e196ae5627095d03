"""Requests whose body was held back until 100 (Continue), told from record lengths (RFC 9110 section 10.1.1)."""

from __future__ import annotations

import numpy as np

from netdiag.analysis.keyless.observed import Observed
from netdiag.analysis.keyless.rows import last_before
from netdiag.analysis.keyless.speaking import Speaking
from netdiag.plain import plain
from netdiag.protocols.conversation import CLIENT, SERVER
from netdiag.wire.tables import NONE, Bool, Int64, Table

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


def without_continue(seen: Observed, kept: Speaking, h2: Bool) -> tuple[Speaking, HeldBack]:
    """Take out 100 (Continue): a server record of its size between two client records of an HTTP/1 session."""
    middle = _between_two_of_the_client(kept)
    middle = middle[np.isin(seen.content[kept.row[middle]], CONTINUE_BYTES)]
    middle = middle[~h2[kept.session[middle]] & ~kept.doubtful[middle]]
    before, after = middle - 1, middle + 1
    held = HeldBack(
        session=kept.session[middle],
        head_last_at=kept.ends_at[before],
        head_last_packet=seen.records.last_packet[kept.row[before]],
        continued_at=kept.begins_at[middle],
        continued_packet=seen.records.last_packet[kept.row[middle]],
        body_first_at=kept.begins_at[after],
        body_first_packet=seen.records.first_packet[kept.row[after]],
    )
    if not len(middle):
        return kept, held
    left = np.ones(len(kept), bool)
    left[middle] = False
    return kept.take(left), held


def _between_two_of_the_client(kept: Speaking) -> Int64:
    """Places of server records with a client record of the same session right before and right after."""
    side, session = kept.direction, kept.session
    around = (side[1:-1] == SERVER) & (side[:-2] == CLIENT) & (side[2:] == CLIENT)
    return np.flatnonzero(around & (session[1:-1] == session[:-2]) & (session[1:-1] == session[2:])) + 1


def of_each_turn(held: HeldBack, session: Int64, first_at: Int64, last_at: Int64) -> Int64:
    """Row in ``held`` for each turn (by session and time) whose request it is part of; NONE for all others. The first, where a turn is
    several requests."""
    rows = np.full(len(session), NONE, np.int64)
    asked = np.flatnonzero(first_at != NONE)
    if not len(held) or not len(asked):
        return rows
    place = last_before(session[asked], first_at[asked], held.session, held.head_last_at)
    turn = asked[np.maximum(place, 0)]
    inside = (place != NONE) & (held.body_first_at <= last_at[turn])
    rows[turn[inside][::-1]] = np.flatnonzero(inside)[::-1]
    return rows
