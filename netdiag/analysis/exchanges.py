"""Connection, TLS handshake, DNS lookup and turns become exchanges (as drafts: ids come when all are known)."""

from __future__ import annotations

from collections.abc import Sequence

from netdiag.analysis.drafts import Draft
from netdiag.analysis.marks import Mark, Marks, Milestone
from netdiag.analysis.outcomes import Ending, end_of_body, ending_of
from netdiag.analysis.pairing import Lookup
from netdiag.protocols.turn import Turn, TurnEnd
from netdiag.records.connection import Connection
from netdiag.records.timing import Method
from netdiag.records.tls import TlsSession
from netdiag.wire.chunk import Moment

M = Milestone
_CONTINUE = 100


def sent(moment: Moment) -> Mark:
    """Octets of the client count when first transmitted."""
    return Mark(moment.seen_at, moment.packet)


def delivered(moment: Moment) -> Mark:
    """Octets of the server count when a perfect client could use them."""
    return Mark(moment.deliverable_at, moment.delivered_by)


def set_up_marks(connection: Connection, lookup: Lookup | None = None) -> Marks:
    """Name resolution and TCP handshake; marks that were not captured are absent. Layers above add their own."""
    marks: Marks = {}
    if lookup is not None:
        marks[M.DNS_QUERY], marks[M.DNS_ANSWER] = lookup.query, lookup.answer
    if connection.syn_at is not None:
        marks[M.SYN] = Mark(connection.syn_at, connection.syn_packet)
    if connection.syn_ack_at is not None and connection.syn_at is not None:
        marks[M.SYN_ACK] = Mark(connection.syn_ack_at, connection.syn_ack_packet)
    return marks


def handshake_marks(session: TlsSession) -> Marks:
    """First ClientHello octet sent, and the handshake's end for the client."""
    marks: Marks = {}
    if session.client_hello_at is not None:
        marks[M.CLIENT_HELLO] = Mark(session.client_hello_at, session.client_hello_packet)
    if session.finished_at is not None:
        method = Method(session.finished_method or Method.EXACT)
        marks[M.TLS_FINISHED] = Mark(session.finished_at, None, method=method)
    return marks


def turn_marks(turn: Turn) -> Marks:
    """Milestones of one request and its answer. ``RESPONSE_LAST`` is there only when the answer is whole."""
    marks: Marks = {}
    if turn.request_first is not None and not turn.pushed:
        marks[M.REQUEST_FIRST] = sent(turn.request_first)
    if turn.request_last is not None:
        # A promised request is the server's: its wait begins when the promise is deliverable (RFC 9113 section 8.4).
        marks[M.REQUEST_LAST] = delivered(turn.request_last) if turn.pushed else sent(turn.request_last)
    if turn.expects_continue:
        _mark_continue(turn, marks)
    if turn.response_first is not None:
        marks[M.RESPONSE_FIRST] = delivered(turn.response_first)
    if turn.response_last is not None and turn.end in (TurnEnd.COMPLETE, TurnEnd.UNTIL_CLOSE, TurnEnd.TUNNEL):
        marks[M.RESPONSE_LAST] = delivered(turn.response_last)
    return marks


def _mark_continue(turn: Turn, marks: Marks) -> None:
    """The waiting for 100 (Continue), when the client did wait."""
    head, body = turn.request_head_last, turn.request_body_first
    if head is None:
        return
    allowed = next((i.moment for i in turn.interim if i.status == _CONTINUE), None)
    if body is None:
        if turn.response_first is not None:  # refused before the body: the head is all that was sent
            marks[M.REQUEST_LAST] = sent(head)
        elif turn.request_last is None:
            marks[M.REQUEST_HEAD_LAST] = sent(head)
            if allowed is not None:
                marks[M.CONTINUED] = delivered(allowed)
        return
    if body.seen_at <= head.seen_at:
        return
    marks[M.REQUEST_HEAD_LAST] = sent(head)
    marks[M.REQUEST_BODY_FIRST] = sent(body)
    waited = allowed is not None and allowed.deliverable_at <= body.seen_at
    marks[M.CONTINUED] = delivered(allowed) if waited and allowed is not None else sent(body)


def drafts_of(
    connection: Connection,
    set_up: Marks,
    turns: Sequence[Turn],
    *,
    gaps: bool = False,
    server_name: str | None = None,
    upgraded: bool = False,
    settings_at: int | None = None,
) -> list[Draft]:
    """The exchanges of one connection whose messages could be read; the first request pays for the set-up.

    ``settings_at``: when the server's first SETTINGS was deliverable, which some clients wait for before their second stream.
    ``upgraded``: from HTTP/1.1 to HTTP/2, so that stream 1 answers the request that 101 answered before (RFC 7540 section 3.2).
    """
    drafts: list[Draft] = []
    quiet_since: int | None = None
    for ordinal, turn in enumerate(turns):
        marks = turn_marks(turn)
        opens = ordinal == 0 and M.REQUEST_FIRST in marks
        if turn.end is TurnEnd.UNTIL_CLOSE:
            _until_close(turn, connection, marks)
        if opens:
            marks = {**set_up, **marks}
        if not marks:
            continue
        missing = bool(turn.request_missing_bytes or turn.response_missing_bytes)
        ending = ending_of(turn, connection, gaps=gaps or missing)
        if ending.at is not None:
            _not_taken(marks, ending.at)
        draft = draft_of(connection, turn, marks, ending, ordinal, server_name)
        draft.idle_before_ns = _idle_ns(turn, quiet_since)
        if upgraded and turn.stream_id == 1:
            draft.request_packet = None  # the packet with that request belongs to the exchange that 101 ended
        drafts.append(draft)
        quiet_since = _later(quiet_since, _ends_at(draft))
    _name_the_opener(drafts, connection, settings_at)
    return drafts


def _not_taken(marks: Marks, stopped: Mark) -> None:
    """What came of the answer after the exchange had been given up is no part of it."""
    for milestone in (M.RESPONSE_FIRST, M.RESPONSE_LAST):
        if milestone in marks and marks[milestone].at > stopped.at:
            del marks[milestone]


def _until_close(turn: Turn, connection: Connection, marks: Marks) -> None:
    """The answer lasts until the client could know that it was over, not until its last octet."""
    closed = end_of_body(turn, connection)
    if closed is None:
        marks.pop(M.RESPONSE_LAST, None)
    else:
        marks[M.RESPONSE_LAST] = closed


def draft_of(
    connection: Connection, turn: Turn, marks: Marks, ending: Ending, ordinal: int, server_name: str | None
) -> Draft:
    """One exchange, by itself: what others on its connection have to do with it is not in it yet."""
    request = turn.request_last or turn.request_head_last or turn.request_first
    return Draft(
        connection=connection,
        marks=marks,
        turn=turn,
        ended=ending.at,
        ordinal=ordinal,
        outcome=ending.outcome,
        outcome_detail=ending.detail,
        server_name=server_name,
        request_packet=turn.request_packet or (None if request is None else request.delivered_by),
        response_packet=None if turn.response_first is None else turn.response_first.delivered_by,
        request_bytes=turn.request_bytes if turn.request_first is not None else None,
        response_bytes=turn.response_bytes if turn.response_first is not None else None,
    )


def _ends_at(draft: Draft) -> int:
    ends = [mark.at for mark in draft.marks.values()]
    return max(ends) if draft.ended is None else draft.ended.at


def _later(a: int | None, b: int) -> int:
    return b if a is None else max(a, b)


def _idle_ns(turn: Turn, quiet_since: int | None) -> int | None:
    """Since the previous answers ended; None for the first request and for one that overlaps another."""
    if quiet_since is None or turn.request_first is None or turn.request_first.seen_at < quiet_since:
        return None
    return turn.request_first.seen_at - quiet_since


AT_ONCE_NS = 5_000_000
"""Requests that a client held back for the server's SETTINGS leave within this time after it."""


def _name_the_opener(drafts: list[Draft], connection: Connection, settings_at: int | None) -> None:
    """Requests sent so soon after the first that no answer to it can have caused them waited for the same set-up; and those held back
    until the server's SETTINGS had come (httpcore starts with one stream)."""
    horizon = waiting_until(drafts[0].marks, connection, settings_at) if drafts else None
    if horizon is None:
        return
    for draft in drafts[1:]:
        first = draft.marks.get(M.REQUEST_FIRST)
        if first is not None and first.at <= horizon:
            draft.opener = drafts[0]


def waiting_until(marks: Marks, connection: Connection, settings_at: int | None) -> int | None:
    """Until when requests waited for the set-up that the exchange with these marks, the first, paid for; None where it paid for none."""
    if M.SYN not in marks or M.REQUEST_FIRST not in marks:
        return None
    horizon = marks[M.REQUEST_FIRST].at + (connection.min_rtt_ns or connection.handshake_rtt_ns or 0)
    if settings_at is not None:
        horizon = max(horizon, settings_at + AT_ONCE_NS)
    answered = marks.get(M.RESPONSE_FIRST)
    return horizon if answered is None else min(horizon, answered.at)
