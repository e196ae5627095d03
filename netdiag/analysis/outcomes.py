"""How an exchange ended, told from its turn and from what the connection did afterwards."""

from __future__ import annotations

from typing import NamedTuple

from netdiag.analysis.marks import Mark, Marks, Milestone
from netdiag.analysis.unreachable import mark_of, reason
from netdiag.protocols.turn import Turn, TurnEnd
from netdiag.records.connection import Connection, Side
from netdiag.records.exchange import Outcome
from netdiag.records.stream import EventKind
from netdiag.records.tls import Alert, TlsSession
from netdiag.units import format_duration
from netdiag.wire.icmp import IcmpError

CLOSE_NOTIFY = 0
USER_CANCELED = 90
_FATAL = 2


class Ending(NamedTuple):
    """``at`` is None when the exchange ran to its last octet."""

    outcome: Outcome
    detail: str | None = None
    at: Mark | None = None


_WHOLE = frozenset({TurnEnd.COMPLETE, TurnEnd.TUNNEL})
_BY_FRAME = {
    TurnEnd.RESET_BY_CLIENT: "RST_STREAM from client",
    TurnEnd.RESET_BY_SERVER: "RST_STREAM from server",
    TurnEnd.GOAWAY: "GOAWAY below this stream",
    TurnEnd.REFUSED: "REFUSED_STREAM",
}


def ending_of(turn: Turn, connection: Connection, *, gaps: bool = False) -> Ending:
    """The end of a turn that could be read. ``gaps``: octets of this connection are missing from the capture."""
    gave_up = _given_up(turn, connection)
    if gave_up is not None:
        return gave_up
    if turn.end in _WHOLE:
        return Ending(of_whole(turn), _status_detail(turn))
    if turn.end is TurnEnd.UNTIL_CLOSE:
        return _ending_until_close(turn, connection)
    if turn.end in _BY_FRAME:
        code = "" if turn.error_code is None else f", error code {turn.error_code}"
        return Ending(Outcome.RESET, _BY_FRAME[turn.end] + code, _mark_of_frame(turn, connection))
    return _cut_short(turn, connection, gaps=gaps)


_AT_ONCE_NS = 5_000_000
"""A host answers octets for a socket that nobody has open any more as soon as they arrive."""


def _given_up(turn: Turn, connection: Connection) -> Ending | None:
    """The client had closed before the answer was there, and refused it with RST (RFC 9293 section 3.10.7.1): a time-out, or somebody who
    pressed a key. One that only closed its half of the connection takes the answer."""
    client, first, last = connection.sides.client, turn.response_first, turn.response_last
    if client.fin_at is None or client.rst_at is None or first is None or last is None:
        return None
    refused_until = last.deliverable_at + (connection.client_rtt_ns or 0) + _AT_ONCE_NS
    asked = turn.request_last is not None and turn.request_last.seen_at <= client.fin_at
    if not (asked and client.fin_at < last.deliverable_at and first.seen_at <= client.rst_at <= refused_until):
        return None
    where = "before any answer" if client.fin_at < first.seen_at else "in the middle of the answer"
    after = format_duration(last.deliverable_at - client.fin_at)
    detail = f"closed by client {where} (it was all there {after} later)"
    return Ending(Outcome.CLOSED_EARLY, detail, Mark(client.fin_at, client.fin_packet))


def of_whole(turn: Turn) -> Outcome:
    """The outcome of a turn whose answer is whole."""
    outcome = by_status(turn.status, turn.grpc_status)
    told = outcome is Outcome.OK and any(event.kind is EventKind.ERROR for event in turn.events)
    return Outcome.STREAM_ERROR if told else outcome


def by_status(status: int | None, grpc_status: int | None) -> Outcome:
    """The outcome of an answer that is whole, by its status alone."""
    failed = (status is not None and status >= 400) or grpc_status not in (None, 0)
    if status is None:
        return Outcome.UNKNOWN
    return Outcome.HTTP_ERROR if failed else Outcome.OK


def _status_detail(turn: Turn) -> str | None:
    return f"gRPC status {turn.grpc_status}" if turn.grpc_status not in (None, 0) else None


def _ending_until_close(turn: Turn, connection: Connection) -> Ending:
    if end_of_body(turn, connection) is None:
        return _cut_short(turn, connection, gaps=False)
    detail = None if _notified(turn, connection) else "the body ends with the connection, so it may have been cut short"
    return Ending(of_whole(turn), _status_detail(turn) or detail)


def end_of_body(turn: Turn, connection: Connection) -> Mark | None:
    """What told the client that a body that only the close delimits was over: the server's close_notify (RFC 9112 section 9.8) or its
    FIN. None where neither was captured, or a RST came before."""
    last = _last_octet(turn)
    closes = [mark for mark in (_notified(turn, connection), _fin(connection)) if mark is not None]
    if last is None or not closes:
        return None
    first = min(closes, key=lambda mark: mark.at)
    return first if first.at >= last.at else last


def _notified(turn: Turn, connection: Connection) -> Mark | None:
    """The server's close_notify, where the keys show it."""
    alerts = () if connection.tls is None else connection.tls.alerts
    since = None if turn.response_first is None else turn.response_first.deliverable_at
    told = (a for a in alerts if a.sender == "server" and a.description == CLOSE_NOTIFY)
    return next((Mark(a.at, a.packet) for a in told if since is None or a.at >= since), None)


def _fin(connection: Connection) -> Mark | None:
    """The server's FIN, unless the connection had been reset before."""
    server, reset = connection.sides.server, first_reset(connection)
    if server.fin_at is None or (reset is not None and reset[1].at < server.fin_at):
        return None
    return Mark(server.fin_at, server.fin_packet)


def _mark_of_frame(turn: Turn, connection: Connection) -> Mark:
    if turn.ended is None:
        return Mark(connection.last_at, connection.last_packet)
    return Mark(turn.ended.deliverable_at, turn.ended.delivered_by)


def _cut_short(turn: Turn, connection: Connection, *, gaps: bool) -> Ending:
    """The octets end before the message does: because of the connection, or because of the capture."""
    gaps = gaps or _answers_not_captured(connection)
    reset = first_reset(connection)
    if reset is not None and not gaps:
        who, mark = reset
        detail = f"RST from {who} {_where(turn)}{_after_fin(connection, who)}{_foreign(connection, who)}"
        return Ending(Outcome.RESET, detail, mark)
    if connection.close_reason == "fin" and not gaps:
        who, mark = first_fin(connection) or ("peer", last_mark(connection))
        return Ending(Outcome.CLOSED_EARLY, f"closed by {who} {_where(turn)}", mark)
    if not gaps:
        return Ending(Outcome.INCOMPLETE, "the capture ends before the answer does", last_mark(connection))
    # How long a wait was whose end is not in the capture is unknown, not 0.
    at = None if turn.response_first is None else _last_octet(turn)
    return Ending(Outcome.INCOMPLETE, "octets are missing from the capture", at)


def _answers_not_captured(connection: Connection) -> bool:
    """Octets that the client acknowledged are in no packet, or nothing of what the server sent is (a capture of one direction)."""
    server = connection.sides.server
    return server.missing_bytes > 0 or (server.packets == 0 and connection.first_packet is not None)


def _where(turn: Turn) -> str:
    if turn.response_first is not None:
        return "in the middle of the answer"
    return "before any answer" if turn.request_last is not None else "in the middle of the request"


def _last_octet(turn: Turn) -> Mark | None:
    """Where octets are missing, the last one seen of this exchange is the best end there is."""
    if turn.response_last is not None:
        return Mark(turn.response_last.deliverable_at, turn.response_last.delivered_by)
    known = [m for m in (turn.response_head_last, turn.response_first) if m is not None]
    if known:
        return Mark(known[0].deliverable_at, known[0].delivered_by)
    sent = [m for m in (turn.request_last, turn.request_head_last, turn.request_first) if m is not None]
    return Mark(sent[0].seen_at, sent[0].packet) if sent else None


def last_mark(connection: Connection) -> Mark:
    """The last packet of the connection in the capture."""
    return Mark(connection.last_at, connection.last_packet)


def first_reset(connection: Connection) -> tuple[str, Mark] | None:
    """Who sent the first RST, and when."""
    client, server = connection.sides.client, connection.sides.server
    return _first(("client", client.rst_at, client.rst_packet), ("server", server.rst_at, server.rst_packet))


def first_fin(connection: Connection) -> tuple[str, Mark] | None:
    """Who sent the first FIN, and when."""
    client, server = connection.sides.client, connection.sides.server
    return _first(("client", client.fin_at, client.fin_packet), ("server", server.fin_at, server.fin_packet))


def _side(connection: Connection, who: str) -> Side:
    return connection.sides.client if who == "client" else connection.sides.server


def _after_fin(connection: Connection, who: str) -> str:
    """Words about a RST that answers what came after the sender had closed: an idle connection used again too late."""
    side = _side(connection, who)
    closed = side.fin_at is not None and side.rst_at is not None and side.fin_at < side.rst_at
    return ", after its FIN" if closed else ""


def _foreign(connection: Connection, who: str) -> str:
    """Words about a RST that took another way than its sender's other packets: somebody on the path may have sent it."""
    side = _side(connection, who)
    if side.rst_hop_limit is None or side.hop_limit in (None, side.rst_hop_limit):
        return ""
    return f" (TTL {side.rst_hop_limit}, not {side.hop_limit}: possibly injected)"


def _first(*sides: tuple[str, int | None, int | None]) -> tuple[str, Mark] | None:
    """Of (who, when, packet) the earliest; None where neither happened."""
    seen = [(who, Mark(at, packet)) for who, at, packet in sides if at is not None]
    return min(seen, key=lambda one: one[1].at, default=None)


def ending_without_a_turn(
    connection: Connection, marks: Marks, capture_ends_at: int, refusal: IcmpError | None = None
) -> Ending | None:
    """Why a connection carried no request; None when it simply was not used (opened ahead, scanned, closed in order).

    ``refusal``: what the network said about the client's packets.
    """
    if connection.close_reason == "refused":
        _, mark = first_reset(connection) or ("server", last_mark(connection))
        return Ending(Outcome.REFUSED, "the SYN was answered with RST", mark)
    if Milestone.SYN_ACK not in marks and Milestone.SYN in marks:
        if refusal is not None and not connection.sides.server.packets:
            return Ending(Outcome.UNREACHABLE, reason(refusal), mark_of(refusal))
        return _unanswered_syn(connection, capture_ends_at)
    if Milestone.CLIENT_HELLO in marks:
        return _failed_handshake(connection, marks)
    reset = connection.sides.server.rst_at
    if (
        reset is not None
        and Milestone.SYN in marks
        and not connection.sides.client.payload_bytes
        and not connection.sides.server.payload_bytes
    ):
        if connection.sides.client.fin_at is not None and connection.sides.client.fin_at <= reset:
            return None
        return Ending(
            Outcome.RESET, "RST from server before any request", Mark(reset, connection.sides.server.rst_packet)
        )
    return None


PATIENCE_NS = 1_000_000_000
"""The first retransmission timeout of a SYN (RFC 6298 section 2.1): with less silence than this at the end, nothing has failed yet."""


def _unanswered_syn(connection: Connection, capture_ends_at: int) -> Ending | None:
    if connection.sides.server.packets:
        return None  # something came back, only the SYN-ACK was not captured
    last = last_mark(connection)
    if (
        connection.sides.client.rst_at is None
        and capture_ends_at - connection.last_at < PATIENCE_NS
        and not connection.syn_retries
    ):
        return Ending(Outcome.INCOMPLETE, "the capture ends before the SYN is answered", last)
    return Ending(Outcome.TIMEOUT_CONNECT, f"{connection.syn_retries + 1} SYN without an answer", last)


def _failed_handshake(connection: Connection, marks: Marks) -> Ending | None:
    alert = fatal_alert(connection.tls)
    if alert is not None:
        return Ending(Outcome.TLS_FAIL, f"alert {alert.name} from {alert.sender}", Mark(alert.at, alert.packet))
    if Milestone.TLS_FINISHED in marks:
        return None
    reset, fin = first_reset(connection), first_fin(connection)
    if reset is not None and (fin is None or reset[1].at <= fin[1].at):
        where = f"during the TLS handshake{_foreign(connection, reset[0])}"
        return Ending(Outcome.RESET, f"RST from {reset[0]} {where}", reset[1])
    if fin is not None:
        return Ending(Outcome.TLS_FAIL, f"closed by {fin[0]} during the TLS handshake", fin[1])
    return Ending(Outcome.INCOMPLETE, "the capture ends before the TLS handshake does", last_mark(connection))


def fatal_alert(session: TlsSession | None) -> Alert | None:
    """The first alert that ends a session for a reason (RFC 8446 section 6); closing in order is none."""
    alerts = () if session is None else session.alerts
    return next((a for a in alerts if a.level == _FATAL and a.description not in (CLOSE_NOTIFY, USER_CANCELED)), None)
