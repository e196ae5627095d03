"""All exchanges of a capture: records made when asked for, and columns for whoever asks about all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from netdiag.analysis.drafts import Draft
from netdiag.analysis.marks import Milestone
from netdiag.analysis.phase_columns import ABSENT, BreakdownColumns, split_columns
from netdiag.analysis.rows import Rows
from netdiag.analysis.stream_timing import stream_timing
from netdiag.records.exchange import Exchange, Outcome
from netdiag.records.exchange_table import MeasuredExchanges
from netdiag.records.timing import PhaseName
from netdiag.wire.tables import NONE, Bool, Int64

OUTCOMES = tuple(Outcome)
"""By their codes in a column."""
CODES = {outcome: code for code, outcome in enumerate(OUTCOMES)}
_STREAM_TIMES = ("first_event", "first_token", "first_visible")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeColumns:
    """One row per exchange."""

    started_at: Int64
    total_ns: Int64
    unattributed_ns: Int64
    arms: tuple[str, ...]
    arm: Int64
    """Index into ``arms``."""
    outcome: Int64
    """Index into ``OUTCOMES``."""
    pushed: Bool
    durations_ns: dict[str, Int64]
    """Phases, and times counted from the beginning (``first_byte`` …), by name; NONE where an exchange has none."""

    def __len__(self) -> int:
        return len(self.started_at)

    def take(self, rows: Int64) -> ExchangeColumns:
        """The rows in another order, or some of them."""
        return ExchangeColumns(
            started_at=self.started_at[rows],
            total_ns=self.total_ns[rows],
            unattributed_ns=self.unattributed_ns[rows],
            arms=self.arms,
            arm=self.arm[rows],
            outcome=self.outcome[rows],
            pushed=self.pushed[rows],
            durations_ns={name: column[rows] for name, column in self.durations_ns.items()},
        )

    @classmethod
    def concat(cls, parts: Sequence[ExchangeColumns]) -> ExchangeColumns:
        """All rows of the parts, in order."""
        arms = tuple(dict.fromkeys(arm for part in parts for arm in part.arms))
        places = [np.array([arms.index(arm) for arm in part.arms] or [0], np.int64) for part in parts]
        names = dict.fromkeys(name for part in parts for name in part.durations_ns)
        return cls(
            started_at=np.concatenate([part.started_at for part in parts]),
            total_ns=np.concatenate([part.total_ns for part in parts]),
            unattributed_ns=np.concatenate([part.unattributed_ns for part in parts]),
            arms=arms,
            arm=np.concatenate([place[part.arm] for place, part in zip(places, parts, strict=True)]),
            outcome=np.concatenate([part.outcome for part in parts]),
            pushed=np.concatenate([part.pushed for part in parts]),
            durations_ns={name: np.concatenate([_column(part, name) for part in parts]) for name in names},
        )


def _column(part: ExchangeColumns, name: str) -> Int64:
    column = part.durations_ns.get(name)
    return np.full(len(part), NONE, np.int64) if column is None else column


def columns(
    breakdown: BreakdownColumns,
    *,
    arms: tuple[str, ...],
    arm: Int64,
    outcome: Int64,
    pushed: Bool | None = None,
    since_request: dict[str, Int64] | None = None,
) -> ExchangeColumns:
    """``since_request``: times counted from the first request octet, NONE where there are none."""
    durations = {str(name): column for name, column in breakdown.durations_ns.items()}
    durations |= _first_times(breakdown, since_request or {})
    return ExchangeColumns(
        started_at=breakdown.started_at,
        total_ns=breakdown.total_ns,
        unattributed_ns=breakdown.unattributed_ns,
        arms=arms,
        arm=arm,
        outcome=outcome,
        pushed=np.zeros(len(arm), np.bool_) if pushed is None else pushed,
        durations_ns=durations,
    )


def _first_times(breakdown: BreakdownColumns, since_request: dict[str, Int64]) -> dict[str, Int64]:
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


def columns_of_drafts(drafts: Sequence[Draft]) -> ExchangeColumns:
    """The columns of exchanges that are drafted one by one."""
    marks = {m: np.full(len(drafts), ABSENT, np.int64) for m in Milestone}
    ended = np.full(len(drafts), ABSENT, np.int64)
    arms: dict[str, int] = {}
    arm, outcome, pushed = [], [], []
    streams: list[tuple[int, Draft]] = []
    for place, draft in enumerate(drafts):
        for milestone, mark in draft.marks.items():
            marks[milestone][place] = mark.at
        if draft.ended is not None:
            ended[place] = draft.ended.at
        turn = draft.turn
        name = arm_of(None if turn is None else turn.protocol, reused=draft.ordinal > 0)
        arm.append(arms.setdefault(name, len(arms)))
        outcome.append(CODES[draft.outcome])
        pushed.append(turn is not None and turn.pushed)
        if turn is not None and turn.events:
            streams.append((place, draft))
    used = {m: column for m, column in marks.items() if (column != ABSENT).any()}
    return columns(
        split_columns(used, ended),
        arms=tuple(arms),
        arm=np.array(arm, np.int64),
        outcome=np.array(outcome, np.int64),
        pushed=np.array(pushed, np.bool_),
        since_request=_stream_times(streams, len(drafts)),
    )


def _stream_times(streams: Iterable[tuple[int, Draft]], count: int) -> dict[str, Int64]:
    found: dict[str, Int64] = {}
    for place, draft in streams:
        timing = None if draft.turn is None else stream_timing(draft.turn)
        for name in _STREAM_TIMES:
            value = getattr(timing, f"{name}_ns", None)
            if value is not None:
                found.setdefault(name, np.full(count, NONE, np.int64))[place] = value
    return found


class ExchangeRows(Rows[Exchange], MeasuredExchanges):
    """The exchanges in the order in which they began; their ids are their places in it."""

    __slots__ = ("columns",)

    def __init__(self, columns: ExchangeColumns, make: Callable[[int], Exchange]) -> None:
        super().__init__(len(columns), make)
        self.columns = columns

    def places_of_slowest(self, most: int) -> list[int]:
        """As ``MeasuredExchanges``."""
        order: Int64 = np.argsort(-self.columns.total_ns, kind="stable")
        return [int(place) for place in order[:most]]

    def counts(self) -> dict[Outcome, int]:
        """As ``MeasuredExchanges``."""
        counts = np.bincount(self.columns.outcome, minlength=len(OUTCOMES)).tolist()
        return {outcome: count for outcome, count in zip(OUTCOMES, counts, strict=True) if count}
