"""All exchanges of a capture: records made when asked for, and columns for whoever asks about all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from netdiag.analysis.drafts import Draft
from netdiag.analysis.marks import Milestone
from netdiag.analysis.phase_columns import ABSENT, BreakdownColumns, split_columns
from netdiag.analysis.rows import Rows
from netdiag.analysis.stream_timing import first_times
from netdiag.plain import plain
from netdiag.protocols.retry_marks import bears_mark
from netdiag.protocols.turn import Turn
from netdiag.records.exchange import CONNECT, Exchange, Outcome
from netdiag.records.exchange_table import MeasuredExchanges
from netdiag.records.timing import PhaseName
from netdiag.wire.tables import NONE, Bool, Int64

OUTCOMES = tuple(Outcome)
"""By their codes in a column."""
CODES = {outcome: code for code, outcome in enumerate(OUTCOMES)}
IN_RECORD = NONE - 1


@plain(frozen=True, slots=True, kw_only=True)
class ExchangeColumns:
    """One row per exchange, in the order of their ids."""

    started_at: Int64
    total_ns: Int64
    unattributed_ns: Int64
    arms: tuple[str, ...]
    arm: NDArray[Any]
    """Index into ``arms``."""
    outcome: NDArray[Any]
    """Index into ``OUTCOMES``."""
    set_aside: Bool
    """Pushed by the server, or a CONNECT that opened a tunnel: no request of its arm, whose durations say something else."""
    status: NDArray[Any]
    """Of the answer; NONE where there is none, or it could not be read; IN_RECORD where a gRPC status says more."""
    marked: Bool
    """The request may tell which attempt of a call it is."""
    durations_ns: dict[str, Int64]
    """Phases, and times counted from the beginning (``first_byte`` …), by name; NONE where an exchange has none."""

    def __len__(self) -> int:
        return len(self.started_at)

    def ordered(self, order: NDArray[Any], room: Room, release: Callable[[], None]) -> ExchangeColumns:
        """The rows in another order."""

        def moved(column: NDArray[Any]) -> NDArray[Any]:
            out = room(len(order), column.dtype)
            np.take(column, order, out=out, mode="clip")  # any other mode makes a copy first
            release()
            return out

        return ExchangeColumns(
            started_at=moved(self.started_at),
            total_ns=moved(self.total_ns),
            unattributed_ns=moved(self.unattributed_ns),
            arms=self.arms,
            arm=moved(self.arm),
            outcome=moved(self.outcome),
            set_aside=moved(self.set_aside),
            status=moved(self.status),
            marked=moved(self.marked),
            durations_ns={name: moved(column) for name, column in self.durations_ns.items()},
        )


Room = Callable[[int, np.dtype[Any]], NDArray[Any]]
"""Makes an array to be filled."""
_INT64, _INT16, _INT8, _BOOL = (np.dtype(kind) for kind in (np.int64, np.int16, np.int8, np.bool_))


class Assembled:
    """One table put together from the tables of parts."""

    def __init__(self, count: int, room: Room) -> None:
        self._count, self._room = count, room
        self._columns = {name: room(count, _INT64) for name in ("started_at", "total_ns", "unattributed_ns")}
        self._arm, self._outcome, self._set_aside = room(count, _INT16), room(count, _INT8), room(count, _BOOL)
        self._status, self._marked = room(count, _INT16), room(count, _BOOL)
        self._durations: dict[str, Int64] = {}
        self._arms: dict[str, int] = {}

    def add(self, part: ExchangeColumns, rows: slice) -> None:
        """Fill some rows."""
        for name, column in self._columns.items():
            column[rows] = getattr(part, name)
        arms = np.array([self._arms.setdefault(arm, len(self._arms)) for arm in part.arms] or [0], np.int16)
        self._arm[rows], self._outcome[rows], self._set_aside[rows] = arms[part.arm], part.outcome, part.set_aside
        self._status[rows], self._marked[rows] = part.status, part.marked
        for name, column in part.durations_ns.items():
            if name not in self._durations:
                self._durations[name] = self._room(self._count, _INT64)
                self._durations[name][: rows.start] = NONE
            self._durations[name][rows] = column
        for name in self._durations.keys() - part.durations_ns.keys():
            self._durations[name][rows] = NONE

    def table(self) -> ExchangeColumns:
        """When all rows are filled."""
        return ExchangeColumns(
            **self._columns,
            arms=tuple(self._arms),
            arm=self._arm,
            outcome=self._outcome,
            set_aside=self._set_aside,
            status=self._status,
            marked=self._marked,
            durations_ns=self._durations,
        )


@plain(frozen=True, slots=True, kw_only=True)
class MarkTable:
    """What is known of exchanges before they are split: one row per exchange, by connection and order inside."""

    connection: Int64
    """Id."""
    position: Int64
    """Among the exchanges of its connection, from 0."""
    marks: dict[Milestone, Int64]
    """ABSENT where an exchange has none."""
    ended: Int64
    """Where it stopped, ABSENT if it ran to its last milestone."""
    arms: tuple[str, ...]
    arm: NDArray[Any]
    outcome: NDArray[Any]
    set_aside: Bool
    status: NDArray[Any]
    marked: Bool
    """As in ``ExchangeColumns``, like the four before."""
    since_request: dict[str, Int64]
    """Times counted from the first request octet (``first_token`` …); NONE where there are none."""

    def __len__(self) -> int:
        return len(self.connection)

    @classmethod
    def concat(cls, parts: Sequence[MarkTable]) -> MarkTable:
        """All rows of the parts, in order. ``parts`` must not be empty."""
        arms = tuple(dict.fromkeys(arm for part in parts for arm in part.arms))
        places = [np.array([arms.index(arm) for arm in part.arms] or [0], np.int64) for part in parts]
        return cls(
            connection=np.concatenate([part.connection for part in parts]),
            position=np.concatenate([part.position for part in parts]),
            marks=_joined([part.marks for part in parts], [len(part) for part in parts], ABSENT),
            ended=np.concatenate([part.ended for part in parts]),
            arms=arms,
            arm=np.concatenate([place[part.arm] for place, part in zip(places, parts, strict=True)]),
            outcome=np.concatenate([part.outcome for part in parts]),
            set_aside=np.concatenate([part.set_aside for part in parts]),
            status=np.concatenate([part.status for part in parts]),
            marked=np.concatenate([part.marked for part in parts]),
            since_request=_joined([part.since_request for part in parts], [len(part) for part in parts], NONE),
        )

    def looked_up(self, lookups: Mapping[int, tuple[int, int]]) -> MarkTable:
        """With the query and the answer of each connection's name: they belong to the exchange that has its SYN."""
        if not lookups or Milestone.SYN not in self.marks:
            return self
        opens = (self.marks[Milestone.SYN] != ABSENT) & np.isin(self.connection, list(lookups))
        nothing = np.full(len(self), ABSENT, np.int64)
        asked, answered = (self.marks.get(m, nothing).copy() for m in (Milestone.DNS_QUERY, Milestone.DNS_ANSWER))
        for row in np.flatnonzero(opens).tolist():
            asked[row], answered[row] = lookups[int(self.connection[row])]
        names = {Milestone.DNS_QUERY: asked, Milestone.DNS_ANSWER: answered}
        return dataclasses.replace(self, marks={**self.marks, **names})

    def given_up(self, connections: Collection[int]) -> MarkTable:
        """With the attempts that another address superseded: nobody asked for anything there."""
        if not connections:
            return self
        chosen = np.isin(self.connection, list(connections))
        if not chosen.any():
            return self
        outcome = np.where(chosen, CODES[Outcome.SUPERSEDED], self.outcome)
        return dataclasses.replace(self, outcome=outcome, set_aside=self.set_aside | chosen)

    def measured(self) -> ExchangeColumns:
        """Split into phases."""
        breakdown = split_columns(self.marks, self.ended)
        durations = {str(name): column for name, column in breakdown.durations_ns.items()}
        return ExchangeColumns(
            started_at=breakdown.started_at,
            total_ns=breakdown.total_ns,
            unattributed_ns=breakdown.unattributed_ns,
            arms=self.arms,
            arm=self.arm,
            outcome=self.outcome,
            set_aside=self.set_aside,
            status=self.status,
            marked=self.marked,
            durations_ns=durations | _first_times(breakdown, self.since_request),
        )


Key = TypeVar("Key")


def _joined(parts: Sequence[Mapping[Key, Int64]], sizes: Sequence[int], absent: int) -> dict[Key, Int64]:
    """Columns of several tables, filled up where a table lacks one."""
    found: dict[Key, Int64] = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        filled = (
            part[name] if name in part else np.full(size, absent, np.int64)
            for part, size in zip(parts, sizes, strict=True)
        )
        found[name] = np.concatenate(list(filled))
    return found


def _first_times(breakdown: BreakdownColumns, since_request: Mapping[str, Int64]) -> dict[str, Int64]:
    found: dict[str, Int64] = {}
    answered = breakdown.begins_at.get(PhaseName.TRANSFER)
    if answered is not None:
        found["first_byte"] = np.where(answered == ABSENT, NONE, answered - breakdown.started_at)
    sent = breakdown.begins_at.get(PhaseName.SEND)
    for name, times in since_request.items():
        if sent is not None:
            known = (sent != ABSENT) & (times != NONE)
            found[name] = np.where(known, sent - breakdown.started_at + times, NONE)
    return found


def arm_of(protocol: str | None, *, reused: bool) -> str:
    """In a file the protocol, with new and reused connections apart because they answer different questions."""
    return f"{protocol or 'encrypted'}{', reused' if reused else ''}"


def marks_of_drafts(drafts: Sequence[Draft]) -> MarkTable:
    """The columns of exchanges that are drafted one by one."""
    marks = {m: [ABSENT] * len(drafts) for m in Milestone}
    arms: dict[tuple[str | None, bool], int] = {}
    arm = []
    streams: list[tuple[int, Turn]] = []
    for place, draft in enumerate(drafts):
        for milestone, mark in draft.marks.items():
            marks[milestone][place] = mark[0]
        turn = draft.turn
        arm.append(arms.setdefault((None if turn is None else turn.protocol, draft.ordinal > 0), len(arms)))
        if turn is not None and turn.events:
            streams.append((place, turn))
    columns = {m: np.array(column, np.int64) for m, column in marks.items()}
    return MarkTable(
        connection=np.array([0 if d.connection is None else d.connection.id for d in drafts], np.int64),
        position=_positions(drafts),
        marks={m: column for m, column in columns.items() if (column != ABSENT).any()},
        ended=np.array([ABSENT if d.ended is None else d.ended.at for d in drafts], np.int64),
        arms=tuple(arm_of(protocol, reused=reused) for protocol, reused in arms),
        arm=np.array(arm, np.int64),
        outcome=np.array([CODES[d.outcome] for d in drafts], np.int64),
        set_aside=np.array(
            [d.turn is not None and (d.turn.pushed or d.turn.method == CONNECT) for d in drafts], np.bool_
        ),
        status=np.array([_status(d.turn) for d in drafts], np.int16),
        marked=np.array([d.turn is not None and bears_mark(d.turn.request_headers) for d in drafts], np.bool_),
        since_request=stream_times(streams, len(drafts)),
    )


def _status(turn: Turn | None) -> int:
    if turn is None or turn.status is None:
        return NONE
    return IN_RECORD if turn.grpc_status else turn.status


def _positions(drafts: Sequence[Draft]) -> Int64:
    seen: dict[int, int] = {}
    found = np.zeros(len(drafts), np.int64)
    for place, draft in enumerate(drafts):
        connection = 0 if draft.connection is None else draft.connection.id
        found[place] = seen.get(connection, 0)
        seen[connection] = seen.get(connection, 0) + 1
    return found


def stream_times(streams: Iterable[tuple[int, Turn]], count: int) -> dict[str, Int64]:
    """``MarkTable.since_request`` of ``count`` exchanges, some of which (by row) have streams of events for answers."""
    found: dict[str, Int64] = {}
    for place, turn in streams:
        for name, value in first_times(turn)._asdict().items():
            if value is not None:
                found.setdefault(name.removesuffix("_ns"), np.full(count, NONE, np.int64))[place] = value
    return found


class ExchangeRows(Rows[Exchange], MeasuredExchanges):
    """The exchanges in the order in which they began; their ids are their places in it."""

    __slots__ = ("columns", "release")

    def __init__(
        self, columns: ExchangeColumns, make: Callable[[int], Exchange], release: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(len(columns), make)
        self.columns = columns
        self.release = release
        """To be called after each pass over a column: where memory is dear, columns lie in a file."""

    def places_of_slowest(self, most: int) -> list[int]:
        """As ``MeasuredExchanges``."""
        order: Int64 = np.argsort(-self.columns.total_ns, kind="stable")
        self.release()
        return [int(place) for place in order[:most]]

    def places_marked(self, chosen: Callable[[Outcome], bool]) -> list[int]:
        """As ``MeasuredExchanges``."""
        codes = [code for code, outcome in enumerate(OUTCOMES) if chosen(outcome)]
        places = np.flatnonzero(np.isin(self.columns.outcome, codes) & self.columns.marked).tolist()
        self.release()
        return [int(place) for place in places]

    def counts(self) -> dict[Outcome, int]:
        """As ``MeasuredExchanges``."""
        counts = np.bincount(self.columns.outcome, minlength=len(OUTCOMES)).tolist()
        return {outcome: count for outcome, count in zip(OUTCOMES, counts, strict=True) if count}
