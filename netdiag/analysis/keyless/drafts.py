"""Turns told from record lengths become exchanges, one at a time and only when asked for."""

from __future__ import annotations

from netdiag.analysis.drafts import Draft
from netdiag.analysis.keyless.tables import Ends, Turns
from netdiag.analysis.marks import Mark, Marks, Milestone
from netdiag.analysis.outcomes import Ending, fatal_alert, first_fin, first_reset, last_mark
from netdiag.records.connection import Connection
from netdiag.records.exchange import Outcome
from netdiag.records.timing import Clock, Method
from netdiag.wire.tables import NONE

M = Milestone
NOT_SEPARABLE = "several requests overlap; without keys they cannot be told apart"
MAY_BE_SEVERAL = "may be several requests sent one after the other: without keys their records look alike"
ALL_READ = Ending(Outcome.UNKNOWN)


def finished_mark(ends: Ends, session: int) -> Mark | None:
    """The end of the handshake as far as record types and sizes tell."""
    at, earliest = int(ends.finished_at[session]), int(ends.earliest_at[session])
    if at == NONE:
        return None
    method = Method.EXACT if ends.exact[session] else Method.GRAMMAR if earliest == at else Method.BOUNDED
    lo = None if earliest == at else earliest
    return Mark(at, _packet(int(ends.packet[session])), Clock.WIRE, method, lo, None)


def keyless_draft(
    connection: Connection,
    set_up: Marks,
    turns: Turns,
    row: int,
    *,
    ordinal: int,
    last: bool,
    quiet_since: int | None,
    server_name: str | None,
) -> Draft:
    """The exchange of one row. ``set_up`` is used by the first request of a connection only."""
    marks = turn_marks(turns, row)
    if ordinal == 0 and M.REQUEST_FIRST in marks:
        marks = {**set_up, **marks}
    ending = _ending(connection, marks) if last else ALL_READ
    if last:
        marks = _perhaps_cut(connection, marks)
    first = marks.get(M.REQUEST_FIRST)
    idle_ns = None if quiet_since is None or first is None else max(0, first.at - quiet_since)
    return Draft(
        connection=connection,
        marks=marks,
        ended=ending.at,
        ordinal=ordinal,
        idle_before_ns=idle_ns,
        outcome=ending.outcome,
        outcome_detail=ending.detail or _doubt(turns, row),
        server_name=server_name,
        request_packet=_packet(int(turns.request_last_packet[row])),
        response_packet=_packet(int(turns.response_first_packet[row])),
        request_bytes=int(turns.request_bytes[row]) if first is not None else None,
        response_bytes=int(turns.response_bytes[row]) if M.RESPONSE_FIRST in marks else None,
    )


def _doubt(turns: Turns, row: int) -> str | None:
    if not turns.separable[row]:
        return NOT_SEPARABLE
    return MAY_BE_SEVERAL if turns.request_earliest_at[row] < turns.request_last_at[row] else None


def turn_marks(turns: Turns, row: int) -> Marks:
    """Milestones of one turn, each with how sure it is."""
    marks: Marks = {}
    method = Method.GRAMMAR if turns.separable[row] else Method.BOUNDED
    if turns.request_first_at[row] != NONE:
        marks[M.REQUEST_FIRST] = _mark(turns.request_first_at[row], turns.request_first_packet[row], Method.GRAMMAR)
        marks[M.REQUEST_LAST] = _last_asked(turns, row, method)
        marks.update(_held_back(turns, row, method))
    if turns.response_first_at[row] != NONE:
        marks[M.RESPONSE_FIRST] = _first_answer(turns, row, method)
        marks[M.RESPONSE_LAST] = _last_answer(turns, row, method)
    return marks


def _held_back(turns: Turns, row: int, method: Method) -> Marks:
    """Of a request that waited for 100 (Continue)."""
    if turns.head_last_at[row] == NONE:
        return {}
    return {
        M.REQUEST_HEAD_LAST: _mark(turns.head_last_at[row], turns.head_last_packet[row], method),
        M.CONTINUED: _mark(turns.continued_at[row], turns.continued_packet[row], method),
        M.REQUEST_BODY_FIRST: _mark(turns.body_first_at[row], turns.body_first_packet[row], method),
    }


def _last_asked(turns: Turns, row: int, method: Method) -> Mark:
    at, packet = int(turns.request_last_at[row]), int(turns.request_last_packet[row])
    earliest = int(turns.request_earliest_at[row])
    if earliest == at:
        return _mark(at, packet, method)
    return Mark(at, _packet(packet), Clock.WIRE, Method.BOUNDED, earliest, None)


def _first_answer(turns: Turns, row: int, method: Method) -> Mark:
    at = int(turns.response_first_at[row])
    earliest, latest = int(turns.response_earliest_at[row]), int(turns.response_latest_at[row])
    exactly = earliest == at == latest
    return Mark(
        at,
        _packet(int(turns.response_first_packet[row])),
        Clock.WIRE,
        method if exactly else Method.BOUNDED,
        None if exactly else earliest,
        None if exactly else latest,
    )


def _last_answer(turns: Turns, row: int, method: Method) -> Mark:
    at, packet = int(turns.response_last_at[row]), int(turns.response_last_packet[row])
    latest = int(turns.response_end_latest_at[row])
    if latest <= at:
        return _mark(at, packet, method)
    return Mark(at, _packet(packet), Clock.WIRE, Method.BOUNDED, None, latest)


def _mark(at: int, packet: int, method: Method) -> Mark:
    return Mark(int(at), _packet(int(packet)), Clock.WIRE, method)


def _packet(number: int) -> int | None:
    return None if number == NONE else number


CUT_WITHIN_NS = 50_000_000
"""A server that breaks an answer off closes at once; one that closes an idle connection has waited for longer."""


def _perhaps_cut(connection: Connection, marks: Marks) -> Marks:
    """The last answer of a connection that the server then closed at once, or that was reset: it may have been cut short, and would have
    lasted until then."""
    last = marks.get(M.RESPONSE_LAST)
    reset, fin = first_reset(connection), first_fin(connection)
    if last is None or (reset is None and fin is None):
        return marks
    who, end = min((e for e in (reset, fin) if e is not None), key=lambda e: e[1].at)
    asked = marks.get(M.REQUEST_LAST)
    by_server = who == "server" and last.at < end.at <= last.at + CUT_WITHIN_NS
    if not by_server or (asked is not None and asked.at > end.at):
        return marks
    bounded = last._replace(method=Method.BOUNDED, lo=last.earliest, hi=max(last.latest, end.at))
    return {**marks, M.RESPONSE_LAST: bounded}


def _ending(connection: Connection, marks: Marks) -> Ending:
    """The last turn of a connection: a request without an answer failed, or the capture ended."""
    alert = fatal_alert(connection.tls)
    if alert is not None and M.RESPONSE_FIRST not in marks:
        return Ending(Outcome.TLS_FAIL, f"alert {alert.name} from {alert.sender}", Mark(alert.at, alert.packet))
    if M.RESPONSE_FIRST in marks:
        return ALL_READ
    reset = first_reset(connection)
    if reset is not None:
        return Ending(Outcome.RESET, f"RST from {reset[0]} before any answer", reset[1])
    fin = first_fin(connection)
    if fin is not None:
        return Ending(Outcome.CLOSED_EARLY, f"closed by {fin[0]} before any answer", fin[1])
    return Ending(Outcome.INCOMPLETE, "the capture ends before any answer", last_mark(connection))
