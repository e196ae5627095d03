"""HTTP/1.0 and HTTP/1.1 as an observer sees them: both directions in, turns out (RFC 9112).

Responses answer requests in order. Times and packets only help where octets are missing: an answer that came before the request was sent
belongs to another one that was not captured.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from netdiag.protocols import http1_head as heads
from netdiag.protocols.anomalies import AnomalyLog
from netdiag.protocols.conversation import Conversation, Tunnel
from netdiag.protocols.event_body import EventBody, open_event_body
from netdiag.protocols.http1_head import Framing, Head
from netdiag.protocols.http1_reader import MessageReader
from netdiag.protocols.redact import redact_target, redact_text
from netdiag.protocols.turn import InterimMoment, Turn, TurnEnd
from netdiag.records.exchange import CONNECT
from netdiag.wire.chunk import Chunk, Moment

_MAX_INTERIM = 100


def decode(client: Iterable[Chunk], server: Iterable[Chunk]) -> Conversation:
    """All turns of one connection. Never raises for what the octets say; both iterables are read to their end, or handed on as a tunnel.

    Where events are behind a content coding it is undone, under limits; nothing of the content is kept.
    """
    return _Decoder(client, server).run()


class _Decoder:
    def __init__(self, client: Iterable[Chunk], server: Iterable[Chunk]) -> None:
        self._log = AnomalyLog("http/1.1")
        self._client = MessageReader(client, self._log, requests=True)
        self._server = MessageReader(server, self._log, requests=False)
        self._turns: list[Turn] = []
        self._tunnel: Tunnel | None = None
        self._upgrade_wish: str | None = None
        """What the request being answered asks to become."""

    def run(self) -> Conversation:
        while self._tunnel is None and (head := self._client.take()) is not None:
            self._request(head)
        while self._tunnel is None and self._server.peek() is not None:
            self._orphan()
        for ordinal, turn in enumerate(self._turns):
            turn.ordinal = ordinal
        protocol = self._turns[0].protocol if self._turns else "http/1.1"
        tunnels = () if self._tunnel is None else (self._tunnel,)
        return Conversation(protocol=protocol, turns=self._turns, anomalies=self._log.rows, tunnels=tunnels)

    def _request(self, head: Head) -> None:
        if head.version != heads.SIMPLE:  # whose answer may have no head to look for
            self._orphans_before(head.first)
        turn = _begin_turn(head)
        self._upgrade_wish = head.section.upgrade
        self._turns.append(turn)
        if turn.method == CONNECT:
            turn.request_last = head.last
            self._response(turn)
            self._connect_without_answer(turn)
            return
        if not (turn.expects_continue and self._withheld_body(turn)):
            self._request_body(turn, head)
        self._response(turn)

    def _request_body(self, turn: Turn, head: Head) -> None:
        framing, length = heads.request_framing(head)
        body = self._client.read_body(framing, length)
        turn.request_body_first = body.first
        turn.request_body_bytes = body.octets
        turn.request_bytes += body.wire_octets
        turn.request_missing_bytes = body.missing
        # A cut head of a method that has no content ends with what was captured of it: the next octets answer it.
        if body.whole or (not head.complete and head.method in ("GET", "HEAD", "OPTIONS", "DELETE")):
            turn.request_last = body.last or head.last

    def _withheld_body(self, turn: Turn) -> bool:
        """RFC 9110 section 10.1.1: a final answer instead of 100, and the client goes on with its next request."""
        self._interims(turn)
        head = self._server.peek()
        if any(i.status == 100 for i in turn.interim) or head is None or not self._client.starts_message():
            return False
        withheld = _before(head.first, self._client.reader.first_moment())
        if withheld:
            turn.request_last = turn.request_head_last
        return withheld

    def _response(self, turn: Turn) -> None:
        """The final response of this turn, if it was captured."""
        if turn.protocol == heads.SIMPLE and (body := self._server.read_headless()) is not None:
            turn.response_first = turn.response_body_first = body.first
            turn.response_last = body.last
            turn.response_bytes = turn.response_body_bytes = body.octets
            turn.end = TurnEnd.UNTIL_CLOSE
            return
        self._interims(turn)
        head = self._server.peek()
        if head is None or self._answers_a_later_request(turn, head):
            return
        self._server.take()
        self._final(turn, head)

    def _interims(self, turn: Turn) -> None:
        """RFC 9110 section 15.2: any number of 1xx may come before the final response; 101 is final here."""
        while (head := self._server.peek()) is not None and 100 <= (head.status or 0) < 200 and head.status != 101:
            if turn.request_first is not None and self._answers_a_later_request(turn, head):
                return
            self._server.take()
            if len(turn.interim) < _MAX_INTERIM:
                turn.interim.append(InterimMoment(status=head.status or 0, moment=head.first))

    def _answers_a_later_request(self, turn: Turn, answer: Head) -> bool:
        """After octets of the server were lost: the answer came after the next request was sent, so, without pipelining, it is that one's."""
        if not answer.resynchronised or turn.method == CONNECT or self._upgrade_wish:
            return False
        following = self._client.peek()
        return following is not None and _before(following.first, answer.first)

    def _orphans_before(self, request_first: Moment) -> None:
        while (head := self._server.peek()) is not None and _before(head.first, request_first):
            self._orphan()

    def _orphan(self) -> None:
        """A response whose request was not captured."""
        turn = Turn(ordinal=0, protocol="http/1.1")
        self._turns.append(turn)
        self._interims(turn)
        head = self._server.take()
        if head is not None:
            turn.protocol = head.version
            self._final(turn, head)

    def _final(self, turn: Turn, head: Head) -> None:
        turn.status = head.status
        turn.response_first = head.first
        turn.response_head_last = head.last
        turn.response_headers = head.section.fields
        turn.headers_incomplete |= not head.complete
        turn.response_bytes = head.octets
        framing, length = heads.response_framing(head, turn.method)
        if self._opens_tunnel(turn):
            turn.response_last = head.last
            turn.end = TurnEnd.TUNNEL
            self._open_tunnel(turn, head.section.upgrade)
            return
        sink = None
        if framing is not Framing.EMPTY:
            sink = open_event_body(turn.response_headers, turn.path, self._log)
        self._response_body(turn, head, framing, length, sink)

    def _response_body(self, turn: Turn, head: Head, framing: Framing, length: int, sink: EventBody | None) -> None:
        body = self._server.read_body(framing, length, sink)
        turn.response_body_first = body.first
        turn.response_last = body.last or head.last
        turn.response_body_bytes = body.octets
        turn.response_bytes += body.wire_octets
        turn.response_missing_bytes = body.missing
        turn.trailers = body.trailers
        if body.whole:
            turn.end = TurnEnd.UNTIL_CLOSE if framing is Framing.UNTIL_CLOSE else TurnEnd.COMPLETE
        if sink is not None:
            sink.finish(turn)

    def _opens_tunnel(self, turn: Turn) -> bool:
        status = turn.status or 0
        return status == 101 or (turn.method == CONNECT and 200 <= status < 300)

    def _open_tunnel(self, turn: Turn, upgrade: str | None) -> None:
        kind, target = "connect", turn.authority
        if turn.status == 101:
            protocol = upgrade or self._upgrade_wish
            kind = protocol if protocol in ("websocket", "h2c") else "other"
            target = None
        rests = self._client.reader.rest(), self._server.reader.rest()
        self._tunnel = Tunnel(kind=kind, turn=turn, client=rests[0], server=rests[1], target=target)

    def _connect_without_answer(self, turn: Turn) -> None:
        """The proxy's answer was not captured; if what follows is no HTTP, the proxy agreed."""
        if (
            turn.status is None
            and self._tunnel is None
            and self._client.reader.more()
            and not self._client.starts_message()
        ):
            turn.end = TurnEnd.TUNNEL
            self._open_tunnel(turn, None)


def _begin_turn(head: Head) -> Turn:
    turn = Turn(
        ordinal=0,
        protocol=head.version,
        method=head.method,
        request_first=head.first,
        request_head_last=head.last,
        request_bytes=head.octets,
        request_headers=head.section.fields,
        headers_incomplete=not head.complete,
        authority=head.section.host,
        expects_continue=head.section.expects_continue,
    )
    _set_target(turn, head.target or "")
    return turn


def _set_target(turn: Turn, target: str) -> None:
    """RFC 9112 section 3.2: origin, absolute, authority or asterisk form."""
    if turn.method == CONNECT and not target.startswith("/"):
        turn.authority = redact_text(target)
        return
    turn.path = redact_target(target)
    if target.startswith("/") or "://" not in target:
        return
    try:
        parts = urlsplit(target)
    except ValueError:  # a bracketed host that is no address
        return
    if parts.scheme and parts.netloc:
        turn.scheme = parts.scheme
        turn.authority = parts.netloc.rpartition("@")[2]
        turn.absolute_target = True
        turn.path = redact_target((parts.path or "/") + (f"?{parts.query}" if parts.query else ""))


def _before(a: Moment, b: Moment) -> bool:
    """Whether ``a`` was surely first: by the capture's clock, and by the order of packets where both are known."""
    if a.packet is not None and b.packet is not None and a.packet >= b.packet:
        return False
    return a.seen_at < b.seen_at
