"""Exchanges of regular HTTP/1 in brief: the instants that statistics and rankings ask for, as columns.

No turn, no mark and no record is made of them. Who asks for one gets it from its connection, heard then as any other is; the rules here are
those of ``exchanges``, for the cases that need nothing but arithmetic.
"""

from __future__ import annotations

import numpy as np

from netdiag.analysis.exchange_columns import CODES as OUTCOME_CODES
from netdiag.analysis.exchange_columns import MarkTable, arm_of
from netdiag.analysis.marks import Milestone
from netdiag.analysis.outcomes import by_status
from netdiag.analysis.phase_columns import ABSENT
from netdiag.plain import plain
from netdiag.wire.distinct import distinct
from netdiag.wire.measure import Openings
from netdiag.wire.tables import NONE, Bool, Int64, Table

M = Milestone
PROTOCOLS = tuple(f"http/1.{minor}" for minor in range(10))
CODES = {protocol: code for code, protocol in enumerate(PROTOCOLS)}


@plain(frozen=True, slots=True, kw_only=True)
class BriefTurns(Table):
    """One row per exchange that was answered in full, by connection and order inside. Instants; NONE where there is none."""

    connection: Int64
    """Number, as in ``Openings``."""
    ordinal: Int64
    protocol: Int64
    """Index into ``PROTOCOLS``."""
    status: Int64
    request_first_at: Int64
    request_last_at: Int64
    response_first_at: Int64
    response_last_at: Int64
    first_event_at: Int64
    first_token_at: Int64
    first_visible_at: Int64
    client_hello_at: Int64
    """Of the connection, as ``finished_at``."""
    finished_at: Int64

    def of(self, connections: Bool) -> BriefTurns:
        """Those of some connections."""
        return self if connections.all() else self.take(connections[self.connection])


def heard_in_brief(table: BriefTurns, openings: Openings) -> Bool:
    """Of each connection whether the rows tell all of its exchanges: no request was held back until another's set-up was over."""
    told = np.zeros(len(openings), np.bool_)
    told[table.connection] = True
    opens = table.ordinal == 0
    first = np.flatnonzero(opens)
    paid = openings.syn_at[table.connection[first]] != NONE
    horizon = np.where(paid, _horizon(table, first, openings), ABSENT)
    place = np.cumsum(opens) - 1
    told[table.connection[~opens & (table.request_first_at <= horizon[place])]] = False
    return told


def _horizon(table: BriefTurns, first: Int64, openings: Openings) -> Int64:
    """As ``exchanges.waiting_until``."""
    connection = table.connection[first]
    halves = openings.client_rtt_ns[connection], openings.server_rtt_ns[connection]
    least = sum(np.where(half == NONE, 0, half) for half in halves)
    handshake = openings.handshake_rtt_ns[connection]
    rtt_ns = np.where(least == 0, np.where(handshake == NONE, 0, handshake), least)
    return np.minimum(table.request_first_at[first] + rtt_ns, table.response_first_at[first])


def exchanges(table: BriefTurns, openings: Openings, first_id: int) -> MarkTable:
    """Every row. ``first_id`` is the id of connection 0."""
    opens = table.ordinal == 0
    syn_at = openings.syn_at[table.connection]
    replied = np.where(syn_at == NONE, NONE, openings.syn_ack_at[table.connection])
    set_up = {
        M.SYN: syn_at,
        M.SYN_ACK: replied,
        M.CLIENT_HELLO: table.client_hello_at,
        M.TLS_FINISHED: table.finished_at,
    }
    marks = {milestone: np.where(opens & (at != NONE), at, ABSENT) for milestone, at in set_up.items()}
    marks[M.REQUEST_FIRST], marks[M.REQUEST_LAST] = table.request_first_at, table.request_last_at
    marks[M.RESPONSE_FIRST], marks[M.RESPONSE_LAST] = table.response_first_at, table.response_last_at
    return MarkTable(
        connection=table.connection + first_id,
        position=table.ordinal,
        marks={milestone: at for milestone, at in marks.items() if (at != ABSENT).any()},
        ended=np.full(len(table), ABSENT, np.int64),
        arms=tuple(arm_of(protocol, reused=reused) for protocol in PROTOCOLS for reused in (False, True)),
        arm=2 * table.protocol + ~opens,
        outcome=_outcomes(table.status),
        set_aside=np.zeros(len(table), np.bool_),
        since_request=_since_request(table),
    )


def _outcomes(status: Int64) -> Int64:
    found = np.zeros(len(status), np.int64)
    for one in distinct(status).tolist():
        found[status == one] = OUTCOME_CODES[by_status(one, None)]
    return found


def _since_request(table: BriefTurns) -> dict[str, Int64]:
    firsts = {
        "first_event": table.first_event_at,
        "first_token": table.first_token_at,
        "first_visible": table.first_visible_at,
    }
    return {
        name: np.where(at == NONE, NONE, at - table.request_first_at)
        for name, at in firsts.items()
        if (at != NONE).any()
    }
