"""Runs: records of one session and direction with nothing of the other side between them."""

from __future__ import annotations

import numpy as np

from netdiag.analysis.keyless.observed import PAUSE_NS
from netdiag.analysis.keyless.rows import groups
from netdiag.analysis.keyless.speaking import Speaking
from netdiag.plain import plain
from netdiag.protocols.conversation import CLIENT
from netdiag.wire.tables import NONE, Bool, Int64


@plain(frozen=True, slots=True, kw_only=True)
class Runs:
    """One row per run, by session and time."""

    found: Speaking
    """The records they consist of: run ``r`` is ``starts[r]:stops[r]``."""
    starts: Int64
    stops: Int64
    asks: Bool
    """Of the client."""
    session: Int64


def runs_of(found: Speaking) -> Runs:
    """The runs of records that are sorted by session and time. There must be one at least."""
    change = (found.session[1:] != found.session[:-1]) | (found.direction[1:] != found.direction[:-1])
    starts = np.flatnonzero(np.r_[True, change])
    return Runs(
        found=found,
        starts=starts,
        stops=np.r_[starts[1:], len(found)],
        asks=found.direction[starts] == CLIENT,
        session=found.session[starts],
    )


def with_a_pause(runs: Runs) -> Bool:
    """Runs in which a pause lies between two records."""
    found = runs.found
    pause = np.r_[0, found.begins_at[1:] - found.ends_at[:-1]]
    pause[runs.starts] = 0
    long: Bool = np.maximum.reduceat(pause, runs.starts) > PAUSE_NS
    return long


def some_before(session: Int64, marked: Bool) -> Bool:
    """Whether an earlier run of the same session is marked."""
    marks = np.maximum.accumulate(np.where(marked, np.arange(len(marked)) + 1, 0))
    before = np.r_[0, marks[:-1]]
    first, group = groups(session)
    found: Bool = before > first[group]
    return found


def at_places(column: Int64, places: Int64, runs: Int64) -> Int64:
    """Values of a column for the chosen runs, with one place in it per run; NONE where the run is."""
    return np.where(runs == NONE, NONE, column[places[np.maximum(runs, 0)]])
