"""Rows of the records of many sessions: which session each is of, and the first of each for which something holds."""

from __future__ import annotations

import numpy as np

from netdiag.analysis.keyless.tables import Sessions
from netdiag.wire.tables import NONE, Bool, Int32, Int64, TlsRecords


def session_row(records: TlsRecords, sessions: Sessions) -> Int64:
    """Row in ``sessions`` for every record (all connections of ``records`` must be in it)."""
    if not len(records):
        return np.empty(0, np.int64)
    begins, run = groups(records.connection)
    return np.searchsorted(sessions.connection, records.connection[begins]).astype(np.int64)[run]


def groups(keys: Int64 | Int32) -> tuple[Int64, Int64]:
    """(where each run of equal keys starts, the number of its run for every place). ``keys`` must not be empty."""
    begins = np.r_[True, keys[1:] != keys[:-1]]
    return np.flatnonzero(begins), np.cumsum(begins) - 1


def first_per_session(mask: Bool, session: Int64, count: int) -> Int64:
    """First row of each session for which the mask holds; NONE where there is none. Rows are in stream order per direction."""
    rows = np.flatnonzero(mask)
    first = np.full(count, NONE, np.int64)
    first[session[rows[::-1]]] = rows[::-1]
    return first


def values_at(column: Int64, rows: Int64) -> Int64:
    """Values at rows, NONE where the row is."""
    if not len(column):
        return np.full(len(rows), NONE, np.int64)
    return np.where(rows == NONE, NONE, column[np.maximum(rows, 0)])


def last_before(session: Int64 | Int32, at: Int64, wanted_session: Int64, wanted_at: Int64) -> Int64:
    """For each wanted moment the last row of that session that is no later; NONE where there is none. Rows are by session and time."""
    times = np.unique(np.concatenate([at, wanted_at]))
    rows = session.astype(np.int64) * len(times) + np.searchsorted(times, at)
    wanted = wanted_session * len(times) + np.searchsorted(times, wanted_at)
    place = np.searchsorted(rows, wanted, "right") - 1
    known = (place >= 0) & (session[np.maximum(place, 0)] == wanted_session)
    return np.where(known, place, NONE)
