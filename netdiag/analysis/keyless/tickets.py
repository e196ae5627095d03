"""Session tickets (RFC 8446 section 4.6.1): one to a few records of equal size that nobody asked for, early in the connection."""

from __future__ import annotations

import numpy as np

from netdiag.analysis.keyless.observed import Observed
from netdiag.analysis.keyless.rows import groups
from netdiag.wire.tables import NONE, Bool, Int64

TICKETS_MOST = 4
"""A server sends one to four tickets of equal size (OpenSSL two, Go one, Chromium's peers up to four)."""
TICKET_BYTES = (60, 2_000)
"""Record length of a NewSessionTicket: a state of a few hundred octets, more with a client certificate inside."""
LONE_TICKET_BYTES = (150, 400)
DELAYED_TICKET_NS = 60_000_000
"""The second ticket may be held back by Nagle until a delayed ACK: seen 42 ms later."""


def tickets(seen: Observed, answers: Bool) -> tuple[Bool, Bool]:
    """(records that are tickets, those of them that could also be a short answer)."""
    found, doubtful = np.zeros(len(answers), bool), np.zeros(len(answers), bool)
    rows = np.flatnonzero(answers & seen.sessions.tls13[seen.session])
    if not len(rows):
        return found, doubtful
    starts, group = groups(seen.session[rows])
    first, counts, rank = rows[starts], np.diff(np.r_[starts, len(rows)]), np.arange(len(rows)) - starts[group]
    run, size = _run_of_equals(seen.records.length[rows], starts, group), seen.records.length[first]
    settling, sized = seen.settling[first], _within(size, TICKET_BYTES)
    several = sized & (run >= 2) & (run <= TICKETS_MOST)
    # A busy server sends its tickets late: equal records before something else are tickets all the same, but no longer for certain.
    late = several & ~settling & (counts > run)
    several &= settling | late
    soon = seen.begins_at[rows] <= seen.begins_at[first][group] + DELAYED_TICKET_NS
    equal = several[group] & (rank < run[group]) & soon
    found[rows[equal]] = True
    doubtful[rows[equal]] = late[group[equal]]
    lone = first[settling & sized & (run == 1) & (counts > 1) & _within(size, LONE_TICKET_BYTES)]
    found[lone] = doubtful[lone] = True
    return found, doubtful


def _run_of_equals(length: Int64, starts: Int64, group: Int64) -> Int64:
    """How many records at the start of each group are as long as its first."""
    edges = np.r_[starts, len(length)]
    unequal = np.flatnonzero(length != length[starts][group])
    first_unequal = edges[1:].copy()
    first_unequal[group[unequal[::-1]]] = unequal[::-1]
    run: Int64 = first_unequal - starts
    return run


def tickets_after_early_data(seen: Observed, answers: Bool) -> Bool:
    """Early data are answered before the client's Finished has come; the tickets follow it, a round trip after it was sent."""
    found = np.zeros(len(answers), bool)
    alike = answers & seen.took_early
    if not alike.any():
        return found
    finished_at, rtt_ns = seen.ends.finished_at[seen.session], seen.sessions.rtt_ns[seen.session]
    after = seen.begins_at >= finished_at + rtt_ns * 9 // 10
    early = seen.first_of_each(alike & ~after)[seen.session] != NONE
    size = seen.records.length
    rows = np.flatnonzero(alike & after & early & seen.settling & _within(size, TICKET_BYTES))
    if not len(rows):
        return found
    starts, group = groups(seen.session[rows])
    several = np.diff(np.r_[starts, len(rows)])[group] <= TICKETS_MOST
    equal = size[rows] == size[rows[starts]][group]
    found[rows[several & equal]] = True
    return found


def _within(size: Int64, bounds: tuple[int, int]) -> Bool:
    inside: Bool = (size >= bounds[0]) & (size <= bounds[1])
    return inside
