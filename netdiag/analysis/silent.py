"""Connections that carried no octet: what became of them, as columns. A scan or a flood has hundreds of thousands.

The rules are those of ``outcomes.ending_without_a_turn``, for the cases without TLS and without a word from the network.
"""

from __future__ import annotations

import numpy as np

from netdiag.analysis.exchange_columns import CODES, MarkTable, arm_of
from netdiag.analysis.marks import Milestone
from netdiag.analysis.outcomes import PATIENCE_NS
from netdiag.analysis.phase_columns import ABSENT
from netdiag.records.exchange import Outcome
from netdiag.wire.close import CloseReason
from netdiag.wire.measure import ConnectionTable
from netdiag.wire.tables import NONE, Bool, Int64

M = Milestone
_NO_OUTCOME = -1


def exchanges(table: ConnectionTable, silent: Bool, first_id: int, capture_ends_at: int) -> MarkTable:
    """Those of the ``silent`` connections that failed, one row each; ``first_id`` is the id of connection 0."""
    outcome, ended = _endings(table, capture_ends_at)
    rows = np.flatnonzero(silent & (table.openings.syn_at != NONE) & (outcome != _NO_OUTCOME))
    count = len(rows)
    syn_ack_at = table.openings.syn_ack_at[rows]
    marks = {M.SYN: table.openings.syn_at[rows], M.SYN_ACK: np.where(syn_ack_at == NONE, ABSENT, syn_ack_at)}
    return MarkTable(
        connection=rows + first_id,
        position=np.zeros(count, np.int64),
        marks={milestone: at for milestone, at in marks.items() if (at != ABSENT).any()},
        ended=ended[rows],
        arms=(arm_of(None, reused=False),),
        arm=np.zeros(count, np.int64),
        outcome=outcome[rows],
        set_aside=np.zeros(count, np.bool_),
        status=np.full(count, NONE, np.int16),
        marked=np.zeros(count, np.bool_),
        since_request={},
    )


def _endings(table: ConnectionTable, capture_ends_at: int) -> tuple[Int64, Int64]:
    """Of each connection, if it was silent: the code of its outcome and when it ended."""
    openings, sides = table.openings, table.sides
    reset = sides.rst_at.reshape(-1, 2)
    refused = openings.close_reason == CloseReason.REFUSED
    unanswered = (openings.syn_ack_at == NONE) & (sides.packets[1::2] == 0)
    patient = (reset[:, 0] == NONE) & (openings.syn_retries == 0)
    pending = patient & (capture_ends_at - openings.last_at < PATIENCE_NS)
    closed_first = (sides.fin_at[0::2] != NONE) & (sides.fin_at[0::2] <= reset[:, 1])
    answered = openings.syn_ack_at != NONE
    thrown_out = (
        answered & (reset[:, 1] != NONE) & ~closed_first & (sides.payload_bytes.reshape(-1, 2) == 0).all(axis=1)
    )
    cases = [refused, unanswered & pending, unanswered, thrown_out]
    told = [Outcome.REFUSED, Outcome.INCOMPLETE, Outcome.TIMEOUT_CONNECT, Outcome.RESET]
    outcome = np.select(cases, [CODES[one] for one in told], _NO_OUTCOME)
    last_at = openings.last_at
    ended = np.select(cases, [_first(reset, last_at), last_at, last_at, reset[:, 1]], ABSENT)
    return outcome, ended


def _first(reset: Int64, otherwise: Int64) -> Int64:
    """The earlier of both sides' instants; ``otherwise`` where neither has one."""
    first = np.where(reset == NONE, np.iinfo(np.int64).max, reset).min(axis=1)
    return np.where((reset == NONE).all(axis=1), otherwise, first)
