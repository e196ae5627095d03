"""Requests and answers told from runs of records: which runs are one turn, and which turns cannot be told apart."""

from __future__ import annotations

import numpy as np

from netdiag.analysis.keyless.held_back import without_continue
from netdiag.analysis.keyless.observed import observe
from netdiag.analysis.keyless.runs import Runs, runs_of, some_before, with_a_pause
from netdiag.analysis.keyless.speaking import speaking
from netdiag.analysis.keyless.tables import Ends, Sessions, Turns, no_turns
from netdiag.analysis.keyless.turn_columns import columns
from netdiag.wire.tables import Bool, Int64, TlsRecords

SOONER_THAN_A_ROUND_TRIP = 0.8
"""The smallest round trip known may be a little longer than the path at this moment."""


def turns(records: TlsRecords, sessions: Sessions, ends: Ends) -> Turns:
    """Requests and answers of all sessions, by session and time."""
    seen = observe(records, sessions, ends)
    found, h2 = speaking(seen)
    found, held = without_continue(seen, found, h2)
    bounds, found = found.take(found.doubtful), found.take(~found.doubtful)
    if not len(found):
        return no_turns()
    runs = runs_of(found)
    turn = _joined(_turn_of_each(runs), runs, h2, sessions)
    return columns(records, runs, turn, h2, bounds, held)


def _turn_of_each(runs: Runs) -> Int64:
    """A turn begins with each run of the client, and with an answer whose request is not in the capture."""
    follows = np.r_[False, runs.session[1:] == runs.session[:-1]]
    return np.cumsum(runs.asks | ~follows) - 1


def _joined(turn: Int64, runs: Runs, h2: Bool, sessions: Sessions) -> Int64:
    """Join turns that cannot be told apart to the one before: when answer records arrive sooner after the request than the path allows
    (they answer the other), and in HTTP/2 when several requests had been open and this one follows within a round trip."""
    rtt_ns = sessions.rtt_ns[runs.session]
    alike = _answered_too_soon(runs, rtt_ns) | _at_once_after_several(runs, h2, rtt_ns)
    joins = alike & _follows_a_request(turn, runs)
    begins = np.zeros(int(turn[-1]) + 1, bool)
    begins[turn[joins]] = True
    return (np.cumsum(~begins) - 1)[turn]


def _answered_too_soon(runs: Runs, rtt_ns: Int64) -> Bool:
    began_at = runs.found.begins_at[runs.starts]
    answered = runs.asks & np.r_[(runs.session[1:] == runs.session[:-1]) & ~runs.asks[1:], False]
    waited_ns = np.r_[began_at[1:], 0] - began_at
    soon: Bool = answered & (waited_ns < SOONER_THAN_A_ROUND_TRIP * rtt_ns)
    return soon


def _at_once_after_several(runs: Runs, h2: Bool, rtt_ns: Int64) -> Bool:
    found = runs.found
    quiet_ns = np.r_[0, found.begins_at[runs.starts[1:]] - found.ends_at[runs.stops[:-1] - 1]]
    several_before = some_before(runs.session, runs.asks & with_a_pause(runs))
    at_once: Bool = runs.asks & h2[runs.session] & (quiet_ns < rtt_ns) & several_before
    return at_once


def _follows_a_request(turn: Int64, runs: Runs) -> Bool:
    """The turn before belongs to the same session and has a request: an answer without one can take nothing in."""
    opening = np.flatnonzero(np.r_[True, turn[1:] != turn[:-1]])
    before = np.maximum(opening[turn] - 1, 0)
    follows: Bool = (turn > 0) & (runs.session[before] == runs.session) & runs.asks[opening[turn[before]]]
    return follows
