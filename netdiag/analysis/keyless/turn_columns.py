"""The times of each turn, with their bounds."""

from __future__ import annotations

import numpy as np

from netdiag.analysis.keyless.held_back import HeldBack, of_each_turn
from netdiag.analysis.keyless.rows import last_before, values_at
from netdiag.analysis.keyless.runs import Runs, at_places
from netdiag.analysis.keyless.speaking import Speaking
from netdiag.analysis.keyless.tables import Turns
from netdiag.plain import plain
from netdiag.wire.tables import NONE, Bool, Int32, Int64, TlsRecords


@plain(frozen=True, slots=True, kw_only=True)
class _Halves:
    """Which runs the request and the answer of each turn are; NONE where that half was not seen."""

    first_ask: Int64
    first_answer: Int64
    last_answer: Int64
    session: Int32
    separable: Bool


def columns(records: TlsRecords, runs: Runs, turn: Int64, h2: Bool, bounds: Speaking, held: HeldBack) -> Turns:
    """One row per turn. ``turn`` numbers each run's; ``h2`` is per session; ``bounds`` are records that may be an answer."""
    halves = _halves(runs, turn)
    request = _request(records, runs, halves, h2)
    certain = halves.separable & (request["request_earliest_at"] == request["request_last_at"])
    response = _response(records, runs, halves, certain)
    asked_at, answer_at = request["request_last_at"], response["response_first_at"]
    return Turns(
        session=halves.session,
        **request,
        **response,
        response_earliest_at=_lower_bounds(asked_at, answer_at, halves.session, bounds),
        **_sizes(records, runs, turn),
        separable=halves.separable,
        h2=h2[halves.session],
        **_held_back(held, halves.session, request),
    )


def _halves(runs: Runs, turn: Int64) -> _Halves:
    count = int(turn[-1]) + 1
    opening = np.flatnonzero(np.r_[True, turn[1:] != turn[:-1]])
    return _Halves(
        first_ask=_pick(turn, runs.asks, count, first=True),
        first_answer=_pick(turn, ~runs.asks, count, first=True),
        last_answer=_pick(turn, ~runs.asks, count, first=False),
        session=runs.session[opening].astype(np.int32),
        separable=np.bincount(turn[runs.asks], minlength=count) <= 1,
    )


def _pick(turn: Int64, mask: Bool, count: int, *, first: bool) -> Int64:
    """First or last run of each turn for which the mask holds; NONE where there is none."""
    runs = np.flatnonzero(mask)
    picked = np.full(count, NONE, np.int64)
    ordered = runs[::-1] if first else runs
    picked[turn[ordered]] = ordered
    return picked


def _request(records: TlsRecords, runs: Runs, halves: _Halves, h2: Bool) -> dict[str, Int64]:
    asked, found, last = halves.first_ask, runs.found, runs.stops - 1
    earliest = np.where(h2[runs.session], runs.starts, last)
    return {
        "request_first_at": at_places(found.begins_at, runs.starts, asked),
        "request_first_packet": at_places(records.first_packet, found.row[runs.starts], asked),
        "request_last_at": at_places(found.ends_at, last, asked),
        "request_last_packet": at_places(records.last_packet, found.row[last], asked),
        "request_earliest_at": at_places(found.ends_at, earliest, asked),
    }


def _response(records: TlsRecords, runs: Runs, halves: _Halves, certain: Bool) -> dict[str, Int64]:
    """``certain``: the request was one, and its end is known."""
    found, answered, last_run = runs.found, halves.first_answer, halves.last_answer
    # A run begins with a record that is surely one of the answer.
    sure = np.maximum.reduceat(np.where(found.acknowledging, -1, np.arange(len(found))), runs.starts)
    first_at, last_at = at_places(found.begins_at, runs.starts, answered), at_places(found.ends_at, sure, last_run)
    return {
        "response_first_at": first_at,
        "response_first_packet": at_places(records.last_packet, found.row[runs.starts], answered),
        "response_latest_at": np.where(certain, first_at, last_at),
        "response_last_at": last_at,
        "response_last_packet": at_places(records.last_packet, found.row[sure], last_run),
        "response_end_latest_at": at_places(found.ends_at, runs.stops - 1, last_run),
    }


def _sizes(records: TlsRecords, runs: Runs, turn: Int64) -> dict[str, Int64]:
    run_bytes = np.add.reduceat(records.length[runs.found.row], runs.starts)
    sides = {"request_bytes": runs.asks, "response_bytes": ~runs.asks}
    count = int(turn[-1]) + 1
    return {
        name: np.bincount(turn[side], run_bytes[side], minlength=count).astype(np.int64) for name, side in sides.items()
    }


_HELD_BACK = (
    "head_last_at",
    "head_last_packet",
    "continued_at",
    "continued_packet",
    "body_first_at",
    "body_first_packet",
)


def _held_back(held: HeldBack, session: Int32, request: dict[str, Int64]) -> dict[str, Int64]:
    row = of_each_turn(held, session.astype(np.int64), request["request_first_at"], request["request_last_at"])
    return {name: values_at(getattr(held, name), row) for name in _HELD_BACK}


def _lower_bounds(asked_at: Int64, answer_at: Int64, session: Int32, bounds: Speaking) -> Int64:
    """A record between request and answer that could be the answer bounds it from below."""
    earliest = answer_at.copy()
    known = np.flatnonzero(asked_at != NONE)
    if not len(bounds) or not len(known):
        return earliest
    place = last_before(session[known], asked_at[known], bounds.session, bounds.begins_at)
    turn = known[np.maximum(place, 0)]
    between = (place != NONE) & (bounds.begins_at < answer_at[turn])
    np.minimum.at(earliest, turn[between], bounds.begins_at[between])
    return earliest
