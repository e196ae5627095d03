"""Turns told from record lengths become exchanges: how sure each milestone is, and how the last one ended."""

from __future__ import annotations

from typing import Any

from netdiag.analysis.drafts import Draft
from netdiag.analysis.keyless.drafts import MAY_BE_SEVERAL, NOT_SEPARABLE, finished_mark, keyless_draft, turn_marks
from netdiag.analysis.keyless.handshake import handshake_end
from netdiag.analysis.keyless.tables import Turns
from netdiag.analysis.marks import Mark, Milestone
from netdiag.records.exchange import Outcome
from netdiag.records.timing import Clock, Method
from netdiag.wire.tables import NONE
from tests.support.record_lengths import FINISHED, MS, Record, heard, hello, sessions, table
from tests.support.turns import connection

M = Milestone
ASKED = [*hello(), Record("client", 23, 160)]
ANSWERED = [*ASKED, Record("server", 60, 600), Record("server", 70, 600)]


def draft(found: Turns, **fields: Any) -> Draft:
    plain = {"ordinal": 0, "last": True, "quiet_since": None, "server_name": "example.org"}
    return keyless_draft(connection(), {}, found, 0, **(plain | fields))


def test_the_end_of_the_handshake_is_by_grammar_and_bounded_where_finished_is_padded() -> None:
    plain = finished_mark(handshake_end(table([hello()]), sessions(1)), 0)
    assert plain is not None
    assert (plain.at, plain.method, plain.lo) == (22 * MS, Method.GRAMMAR, None)
    padded = [*hello()[:-1], Record("client", 22, FINISHED + 100)]
    bounded = finished_mark(handshake_end(table([padded]), sessions(1)), 0)
    assert bounded is not None
    assert (bounded.method, bounded.lo) == (Method.BOUNDED, 20 * MS)


def test_a_handshake_that_is_not_in_the_capture_has_no_end() -> None:
    ends = handshake_end(table([[Record("client", 10, 150)]]), sessions(1, hello_at_ms=None))
    assert finished_mark(ends, 0) is None


def test_milestones_of_a_turn_are_by_grammar() -> None:
    marks = turn_marks(heard(ANSWERED), 0)
    assert {name: mark.at // MS for name, mark in marks.items()} == {
        M.REQUEST_FIRST: 23,
        M.REQUEST_LAST: 23,
        M.RESPONSE_FIRST: 60,
        M.RESPONSE_LAST: 70,
    }
    assert {mark.method for mark in marks.values()} == {Method.GRAMMAR}


def test_what_could_be_a_ticket_bounds_the_answer_from_below() -> None:
    lone = [*ASKED, Record("server", 43, 230), Record("server", 150, 900)]
    first = turn_marks(heard(lone), 0)[M.RESPONSE_FIRST]
    assert (first.at, first.lo, first.hi) == (150 * MS, 43 * MS, 150 * MS)
    assert first.method is Method.BOUNDED


def test_an_answered_request_says_nothing_of_its_outcome_without_keys() -> None:
    found = draft(heard(ANSWERED))
    assert (found.outcome, found.outcome_detail) == (Outcome.UNKNOWN, None)
    assert (found.request_bytes, found.response_bytes) == (160, 1_200)


def test_an_unanswered_last_request_is_incomplete_and_has_no_size_of_an_answer() -> None:
    found = draft(heard(ASKED))
    assert found.outcome is Outcome.INCOMPLETE
    assert found.response_bytes is None
    assert M.RESPONSE_FIRST not in found.marks


def test_the_handshake_belongs_to_the_first_request_alone() -> None:
    set_up = {M.SYN: Mark(0, 1, Clock.WIRE)}
    found = heard(ANSWERED)
    plain: dict[str, Any] = {"last": False, "server_name": None}
    first = keyless_draft(connection(), set_up, found, 0, ordinal=0, quiet_since=None, **plain)
    later = keyless_draft(connection(), set_up, found, 0, ordinal=1, quiet_since=13 * MS, **plain)
    assert (M.SYN in first.marks, M.SYN in later.marks) == (True, False)
    assert (first.idle_before_ns, later.idle_before_ns) == (None, 10 * MS)


def test_doubts_are_said_in_words() -> None:
    found = heard(ANSWERED)
    found.separable[0] = False
    assert draft(found, last=False).outcome_detail == NOT_SEPARABLE
    found.separable[0], found.request_earliest_at[0] = True, found.request_last_at[0] - 1
    assert draft(found, last=False).outcome_detail == MAY_BE_SEVERAL
    assert turn_marks(found, 0)[M.REQUEST_LAST].lo == 23 * MS - 1


def test_no_packet_number_is_none() -> None:
    found = heard(ANSWERED)
    found.request_last_packet[0] = NONE
    assert draft(found).request_packet is None
