"""Exchanges of a connection whose turns are columns: what statistics need as columns, and one draft when somebody asks for it.

The rules are those of ``exchanges``; where a turn needs one that is more than arithmetic, the turn is made and asked.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from netdiag.analysis.dialogue import Leg
from netdiag.analysis.drafts import Draft
from netdiag.analysis.exchange_columns import CODES, IN_RECORD, MarkTable, arm_of, stream_times
from netdiag.analysis.exchanges import draft_of, set_up_marks, turn_marks, waiting_until
from netdiag.analysis.flow_control import FlowControl
from netdiag.analysis.held_up import HeldUp
from netdiag.analysis.marks import Marks, Milestone
from netdiag.analysis.outcomes import Ending, by_status, ending_of
from netdiag.analysis.phase_columns import ABSENT
from netdiag.analysis.requests import settings_at
from netdiag.protocols.http2.columns.turns import ColumnTurns
from netdiag.protocols.retry_marks import bears_mark
from netdiag.protocols.turn import Turn
from netdiag.records.connection import Connection
from netdiag.wire.distinct import distinct
from netdiag.wire.tables import NONE, Int32, Int64

M = Milestone


class Multiplexed:
    """All exchanges of one connection, in the order of its turns."""

    def __init__(self, connection: Connection, leg: Leg, held_up: HeldUp | None) -> None:
        assert leg.columns is not None
        self._connection = connection
        self._turns: ColumnTurns = leg.columns
        self._gaps = leg.gaps
        self._held_up = held_up
        self._name = None if connection.tls is None else connection.tls.sni
        self._set_up: Marks = {**set_up_marks(connection), **leg.marks}
        self._settings_at = settings_at(leg)
        self._flow_control = FlowControl(leg.http2, connection)
        self._quiet_since: Int64 | None = None

    def __len__(self) -> int:
        return len(self._turns)

    def marks(self) -> MarkTable:
        """One row per exchange."""
        count = len(self)
        marks, (ended, outcome) = self._marks(), self._endings()
        return MarkTable(
            connection=np.full(count, self._connection.id, np.int64),
            position=np.arange(count),
            marks=marks,
            ended=ended,
            arms=(arm_of("h2", reused=False), arm_of("h2", reused=True)),
            arm=np.minimum(np.arange(count), 1),
            outcome=outcome,
            set_aside=np.zeros(count, np.bool_),
            status=self._statuses(),
            marked=np.array([bears_mark(one.fields) for one in self._turns.requests], np.bool_)[
                self._turns.table.request
            ],
            since_request=stream_times(((row, t) for row, t in self._turns.made.items() if t.events), count),
        )

    def waited(self, marks: MarkTable) -> list[int]:
        """Rows of exchanges that waited for the set-up that the first one paid for."""
        horizon = waiting_until(self._marks_of(0, self._turns[0]), self._connection, self._settings_at)
        if horizon is None:
            return []
        found: list[int] = (1 + np.flatnonzero(marks.marks[M.REQUEST_FIRST][1:] <= horizon)).tolist()
        return found

    def draft(self, row: int) -> Draft:
        """One exchange."""
        turn = self._turns[row]
        draft = draft_of(self._connection, turn, self._marks_of(row, turn), self._ending(turn), row, self._name)
        draft.idle_before_ns = self._idle_ns(row, turn)
        draft.windows = self._flow_control.of(turn.stream_id)
        draft.held_up = self._held_up
        return draft

    def _statuses(self) -> Int64:
        status, grpc_status = self._turns.statuses()
        told = np.where(grpc_status > 0, IN_RECORD, status)
        for row in self._turns.made:  # what was read from its content is not among the columns
            told[row] = IN_RECORD
        return told

    def _marks_of(self, row: int, turn: Turn) -> Marks:
        return {**self._set_up, **turn_marks(turn)} if row == 0 else turn_marks(turn)

    def _ending(self, turn: Turn) -> Ending:
        return ending_of(turn, self._connection, gaps=self._gaps)

    def _idle_ns(self, row: int, turn: Turn) -> int | None:
        """As ``exchanges``: since all answers before had ended; None for the first request and for one that overlaps another."""
        if row == 0 or turn.request_first is None:
            return None
        if self._quiet_since is None:
            self._quiet_since = np.maximum.accumulate(_ends(self._marks(), self._endings()[0]))
        quiet_ns = turn.request_first.seen_at - int(self._quiet_since[row - 1])
        return quiet_ns if quiet_ns >= 0 else None

    def _marks(self) -> dict[Milestone, Int64]:
        """As ``exchanges.turn_marks``."""
        turns = self._turns
        table, client, server = turns.table, turns.client, turns.server
        answered_at = _picked(server.deliverable_at, table.response_last)
        marks = {
            M.REQUEST_FIRST: _picked(client.first_seen_at, table.request_first),
            M.REQUEST_LAST: _picked(client.last_seen_at, table.request_last),
            M.RESPONSE_FIRST: _picked(server.deliverable_at, table.response_first),
            M.RESPONSE_LAST: np.where(table.answered, answered_at, ABSENT),
        }
        for row in self._peculiar():
            _put(marks, row, turn_marks(turns[row]))
        _put(marks, 0, self._marks_of(0, turns[0]))
        return marks

    def _peculiar(self) -> Iterator[int]:
        """Rows whose marks are more than four instants."""
        turns = self._turns
        expects = np.array([section.expects_continue for section in turns.requests], np.bool_)
        if expects.any():
            yield from np.flatnonzero(expects[turns.table.request]).tolist()

    def _endings(self) -> tuple[Int64, Int64]:
        """When each was stopped, ABSENT where it ran to its end; and codes of their outcomes."""
        turns, table = self._turns, self._turns.table
        ended, outcome = np.full(len(self), ABSENT, np.int64), np.zeros(len(self), np.int64)
        status, grpc_status = turns.statuses()
        pairs = status << 32 | grpc_status + 1
        for pair in distinct(pairs).tolist():
            outcome[pairs == pair] = CODES[by_status(_known(pair >> 32), _known((pair & _LOW) - 1))]
        alone = np.flatnonzero(~table.answered).tolist()
        for row in {*alone, *turns.made}:
            ending = self._ending(turns[row])
            outcome[row] = CODES[ending.outcome]
            ended[row] = ABSENT if ending.at is None else ending.at.at
        return ended, outcome


def _picked(instants: Int64, chunks: Int32) -> Int64:
    """The instant of each row's chunk; ABSENT where it has none."""
    found = instants[chunks]
    missing = chunks == NONE
    if missing.any():
        found[missing] = ABSENT
    return found


def _put(columns: dict[Milestone, Int64], row: int, marks: Marks) -> None:
    """One row's marks in place of what is there."""
    count = len(next(iter(columns.values())))
    for milestone in marks.keys() - columns.keys():
        columns[milestone] = np.full(count, ABSENT, np.int64)
    for milestone, column in columns.items():
        mark = marks.get(milestone)
        column[row] = ABSENT if mark is None else mark.at


_LOW = (1 << 32) - 1


def _known(number: int) -> int | None:
    return None if number == NONE else number


def _ends(marks: dict[Milestone, Int64], ended: Int64) -> Int64:
    """When each was over."""
    last = np.full(len(ended), ABSENT, np.int64)
    for column in marks.values():
        np.maximum(last, column, out=last)
    return np.where(ended == ABSENT, last, ended)
