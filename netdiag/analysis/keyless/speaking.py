"""Which records can carry a request or an answer, in the order of time."""

from __future__ import annotations

import numpy as np

from netdiag.analysis.keyless.application_data import KEY_UPDATE_BYTES, application_data
from netdiag.analysis.keyless.housekeeping import (
    EMPTY_FRAME_BYTES,
    empty_data,
    housekeeping,
    looks_like_h2,
    preface,
    up_to_settings,
)
from netdiag.analysis.keyless.observed import Observed
from netdiag.analysis.keyless.tickets import tickets, tickets_after_early_data
from netdiag.plain import plain
from netdiag.protocols.conversation import SERVER
from netdiag.wire.tables import NONE, Bool, Int64, Table, UInt8


@plain(frozen=True, slots=True, kw_only=True)
class Speaking(Table):
    """Records that can be part of a request or an answer, by session and time."""

    row: Int64
    session: Int64
    direction: UInt8
    begins_at: Int64
    """Client: first octet sent. Server: the record was deliverable."""
    ends_at: Int64
    doubtful: Bool
    """Dropped as a lone ticket or as housekeeping, but could be an answer: a bound, not a record of a turn."""
    ending: Bool
    """Of the size of a SETTINGS ACK, but in a place where an empty DATA frame ends a stream: of the answer before it, if there is one."""
    acknowledging: Bool
    """Of the same size and place, but the first such record of the session: may be the ACK, and is only a bound of the answer's end."""


def speaking(seen: Observed) -> tuple[Speaking, Bool]:
    """Records of requests and answers in time order, and per session whether it looks like HTTP/2."""
    talks = application_data(seen)
    h2 = looks_like_h2(seen, talks)
    of_h2 = h2[seen.session]
    # No frame is so short: with HTTP/2 it is no final chunk, but a KeyUpdate after all.
    talks &= ~(of_h2 & seen.sessions.tls13[seen.session] & (seen.content == KEY_UPDATE_BYTES))
    small = housekeeping(seen, talks & of_h2)
    talks &= ~small
    talks &= ~up_to_settings(seen, talks & seen.server & of_h2)
    ticket, doubtful = tickets(seen, talks & seen.server)
    talks &= ~ticket
    talks &= ~tickets_after_early_data(seen, talks & seen.server)
    # The first answer of a connection is never so small: nothing of its fields was sent before.
    doubtful |= small & seen.server & ~seen.settling & (seen.content != EMPTY_FRAME_BYTES)
    talks &= ~preface(seen, talks, h2)
    ending, acknowledging = empty_data(seen, small & seen.server)
    rows = _in_time_order(seen, np.flatnonzero(talks | doubtful | ending | acknowledging))
    kept = Speaking(
        row=rows,
        session=seen.session[rows],
        direction=seen.records.direction[rows],
        begins_at=seen.begins_at[rows],
        ends_at=seen.ends_at[rows],
        doubtful=doubtful[rows],
        ending=ending[rows],
        acknowledging=acknowledging[rows],
    )
    return _endings_behind_answers(kept), h2


def _in_time_order(seen: Observed, rows: Int64) -> Int64:
    """By session, and there by arrival: times may step back, packets do not."""
    order = np.lexsort((seen.begins_at[rows], _arrival(seen)[rows], seen.session[rows]))
    return rows[order]


def _arrival(seen: Observed) -> Int64:
    """Packets in whose order records count. A server's record needs all before it. All NONE without packets."""
    records = seen.records
    stream = (records.connection.astype(np.int64) * 2 + records.direction) << 40
    needed = np.maximum.accumulate(np.maximum(records.last_packet, 0) + stream) - stream
    return np.where((records.last_packet != NONE) & seen.server, needed, records.first_packet)


def _endings_behind_answers(kept: Speaking) -> Speaking:
    """All records, but of the possible ends of answers only those right behind an answer's record."""
    ends = kept.ending | kept.acknowledging
    if not ends.any():
        return kept
    before = np.maximum.accumulate(np.where(ends | kept.doubtful, -1, np.arange(len(kept))))
    answered = (before >= 0) & (kept.session[before] == kept.session) & (kept.direction[before] == SERVER)
    return kept.take(~ends | answered)
