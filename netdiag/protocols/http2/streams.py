"""The streams of one HTTP/2 connection as turns (RFC 9113 sections 5.1 and 8). Neither direction has to come first."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from netdiag.protocols.anomalies import AnomalyLog
from netdiag.protocols.conversation import CLIENT, SERVER, Http2Facts
from netdiag.protocols.event_body import EventBody, open_event_body
from netdiag.protocols.grpc import status_of
from netdiag.protocols.http2.frames import ErrorCode
from netdiag.protocols.http2.section import Section
from netdiag.protocols.http2.tunnels import StreamTunnel, Tunnels, consents
from netdiag.protocols.http2.windows import WindowLedger
from netdiag.protocols.turn import InterimMoment, Turn, TurnEnd
from netdiag.records.exchange import CONNECT
from netdiag.wire.chunk import Moment

MAX_LIVE_STREAMS = 10_000
MOST_INTERIM = 100
_MOST_UNASKED = 64
MOST_GOAWAYS = 100
_MOST_GIVEN_UP = 256
_FRAME_HEADER_BYTES = 9


@dataclass(slots=True)
class Stream:
    """A stream that has not ended on both sides."""

    turn: Turn
    client_ended: bool = False
    server_ended: bool = False
    sink: EventBody | None = None
    tunnel: StreamTunnel | None = None
    """Asked for with CONNECT, and not refused."""
    server_data_before: int = -1
    """DATA octets of the server on all streams before this stream's first; -1 while it had none."""
    server_data: int = 0
    """DATA octets of the server on this stream."""

    @property
    def tunnelled(self) -> bool:
        """It carries another conversation: its own was over with the consent."""
        return self.tunnel is not None and self.tunnel.opened


class Streams:
    """All streams, their turns in the order in which they were first seen."""

    def __init__(self, log: AnomalyLog, facts: Http2Facts, ledger: WindowLedger) -> None:
        self.turns: list[Turn] = []
        self.tunnels = Tunnels(log)
        self._log = log
        self._facts = facts
        self._ledger = ledger
        self._live: dict[int, Stream] = {}
        self._done: set[int] = set()
        self._server_data = 0
        # Streams on which a side has begun a message and not ended it: somebody who can be stopped by a window.
        self._unfinished = [0, 0]
        self._unasked: deque[int] = deque()
        self._goaways = 0
        self._given_up: dict[int, Turn] = {}

    def get(self, stream_id: int) -> Stream | None:
        """A live stream; made anew where it was not heard of, None where it has ended before."""
        stream = self._live.get(stream_id)
        if stream is None and stream_id not in self._done:
            stream = self._open(stream_id, Turn(ordinal=len(self.turns), protocol="h2", stream_id=stream_id))
        return stream

    def _open(self, stream_id: int, turn: Turn) -> Stream:
        if len(self._live) >= MAX_LIVE_STREAMS:
            self._abandon(next(iter(self._live)))
        turn.open_streams = len(self._live)
        stream = self._live[stream_id] = Stream(turn)
        self.turns.append(turn)
        if len(self._live) > self._facts.max_open_streams:
            self._facts.max_open_streams = len(self._live)
        return stream

    def _abandon(self, stream_id: int) -> None:
        self._log.add(f"more than {MAX_LIVE_STREAMS} streams are open; stream {stream_id} is not followed any more")
        self._close(stream_id, self._live[stream_id])

    def adopt(self, turn: Turn) -> None:
        """Stream 1 of a connection that was upgraded from HTTP/1.1 (RFC 7540 section 3.2): its request came before."""
        stream = self._open(1, turn)
        stream.client_ended = True

    def request(
        self,
        stream_id: int,
        section: Section,
        first: Moment,
        last: Moment,
        octets: int,
        ended: bool,
        headers_packet: int | None = None,
    ) -> None:
        """A header or trailer section from the client. ``headers_packet`` completes its HEADERS frame, without CONTINUATIONs."""
        stream = self.get(stream_id)
        if stream is None:
            return
        turn = stream.turn
        turn.request_bytes += octets
        if turn.request_first is None:
            _set_request(turn, section, first, last)
            turn.request_packet = last.delivered_by if headers_packet is None else headers_packet
            self._begun(CLIENT, stream.client_ended)
            if section.method == CONNECT:
                stream.tunnel = self.tunnels.ask(turn, section.protocol)
        if ended:
            self._request_ends(stream_id, stream, last)

    def promise(self, promised_id: int, section: Section, first: Moment, last: Moment, octets: int) -> None:
        """PUSH_PROMISE (RFC 9113 section 8.4): the server sends the request itself."""
        stream = self.get(promised_id)
        if stream is None:
            return
        turn = stream.turn
        turn.pushed = True
        turn.request_bytes += octets
        _set_request(turn, section, first, last)
        turn.request_packet = turn.request_packet or last.delivered_by
        turn.request_last = last
        stream.client_ended = True

    def response(self, stream_id: int, section: Section, first: Moment, last: Moment, octets: int, ended: bool) -> None:
        """A header or trailer section from the server."""
        stream = self.get(stream_id)
        if stream is None:
            self._answered_too_late(stream_id, section)
            return
        if stream.tunnelled:  # nothing but DATA may come (RFC 9113 section 8.5)
            if ended:
                self._server_ended(stream_id, stream)
            return
        turn = stream.turn
        if _is_interim(section) and not ended and turn.response_first is None:
            if len(turn.interim) < MOST_INTERIM:
                turn.interim.append(InterimMoment(status=section.status or 0, moment=first))
            return
        turn.response_bytes += octets
        turn.headers_incomplete |= section.incomplete
        turn.response_last = last
        if turn.response_first is None and (section.status is not None or stream.server_data_before < 0):
            self._head(stream, section, first, last, ended)
        else:
            turn.trailers = section.fields
        if ended:
            self._server_ended(stream_id, stream)

    def _head(self, stream: Stream, section: Section, first: Moment, last: Moment, ended: bool) -> None:
        turn = stream.turn
        turn.status = section.status
        turn.response_first = first
        turn.response_head_last = last
        turn.response_headers = section.fields
        self._begun(SERVER, stream.server_ended)
        if stream.tunnel is not None and consents(turn):
            stream.tunnel.open()
            return
        stream.tunnel = None
        if not ended:
            stream.sink = open_event_body(section.fields, turn.path, self._log)

    def data_begin(self, side: int, stream_id: int, length: int, first: Moment) -> Stream | None:
        """A DATA frame header; the frame's own octets are counted here."""
        stream = self.get(stream_id)
        if side == SERVER:
            self._server_data += length
        if stream is None or stream.tunnel is not None:
            return stream
        turn = stream.turn
        if side == CLIENT:
            turn.request_bytes += length + _FRAME_HEADER_BYTES
            if turn.request_body_first is None and length:
                turn.request_body_first = first
            return stream
        turn.response_bytes += length + _FRAME_HEADER_BYTES
        if stream.server_data_before < 0:
            stream.server_data_before = self._server_data - length
        if turn.response_body_first is None and length:
            turn.response_body_first = first
        stream.server_data += length
        return stream

    def data_end(
        self,
        side: int,
        stream_id: int,
        stream: Stream,
        length: int,
        padding: int,
        missing: int,
        first: Moment,
        last: Moment,
        ended: bool,
    ) -> None:
        """Its last octet. Where the stream was closed meanwhile, nobody waits for it any more."""
        if self._live.get(stream_id) is not stream:
            return
        turn = stream.turn
        if stream.tunnel is not None:
            pass  # another conversation's octets
        elif side == CLIENT:
            turn.request_body_bytes += length - padding
            turn.request_missing_bytes += missing
        else:
            turn.response_body_bytes += length - padding
            turn.response_missing_bytes += missing
            turn.response_last = last
            turn.other_data_bytes = self._server_data - stream.server_data_before - stream.server_data
        if length:
            self._ledger.data(
                side, stream_id, length, first, last, owes=not ended, others_owe=self._unfinished[side] > ended
            )
        if not ended:
            return
        if side == CLIENT:
            self._request_ends(stream_id, stream, last)
        else:
            self._server_ended(stream_id, stream)

    def reset(self, side: int, stream_id: int, code: int, moment: Moment) -> None:
        """RST_STREAM (RFC 9113 section 6.4)."""
        stream = self._live.get(stream_id)
        if stream is None:
            return
        turn = stream.turn
        if stream.tunnelled:
            self._close(stream_id, stream)
            return
        turn.error_code = code
        if not stream.server_ended:
            turn.ended = moment
            if code == ErrorCode.REFUSED_STREAM:
                turn.end = TurnEnd.REFUSED
            else:
                turn.end = TurnEnd.RESET_BY_SERVER if side == SERVER else TurnEnd.RESET_BY_CLIENT
            if side == CLIENT and turn.status is None:
                self._given_up[stream_id] = turn
                if len(self._given_up) > _MOST_GIVEN_UP:
                    del self._given_up[next(iter(self._given_up))]
        self._close(stream_id, stream)

    def _answered_too_late(self, stream_id: int, section: Section) -> None:
        """The client had reset the stream when the answer came: it reached nobody and has no times, but its status is known."""
        turn = self._given_up.pop(stream_id, None)
        if turn is not None:
            turn.status = section.status
            turn.response_headers = section.fields

    def goaway(self, side: int, last_stream_id: int, code: int, moment: Moment) -> None:
        """GOAWAY (RFC 9113 section 6.8): streams above were not processed by its sender."""
        self._goaways += 1
        if self._goaways > MOST_GOAWAYS:
            return
        mine = 1 if side == SERVER else 0  # the client's streams are odd
        for stream_id in [s for s in self._live if s > last_stream_id and s & 1 == mine]:
            stream = self._live[stream_id]
            if not stream.server_ended and not stream.tunnelled:
                stream.turn.end = TurnEnd.GOAWAY
                stream.turn.error_code = code
                stream.turn.ended = moment
            self._close(stream_id, stream)

    def finish(self) -> None:
        """The octets of the connection end."""
        for stream_id in list(self._live):
            self._close(stream_id, self._live[stream_id])

    def _begun(self, side: int, ended: bool) -> None:
        if not ended:
            self._unfinished[side] += 1

    def _request_ends(self, stream_id: int, stream: Stream, last: Moment) -> None:
        if not stream.tunnelled:
            stream.turn.request_last = last
        self._client_ended(stream_id, stream)

    def _client_ended(self, stream_id: int, stream: Stream) -> None:
        if not stream.client_ended:
            stream.client_ended = True
            if stream.turn.request_first is not None:
                self._unfinished[CLIENT] -= 1
        if stream.server_ended:
            self._close(stream_id, stream)

    def _server_ended(self, stream_id: int, stream: Stream) -> None:
        if not stream.server_ended:
            stream.server_ended = True
            if stream.turn.response_first is not None:
                self._unfinished[SERVER] -= 1
            if not stream.tunnelled:
                stream.turn.end = TurnEnd.COMPLETE
        if stream.client_ended:
            self._close(stream_id, stream)
        elif stream.turn.request_first is None:
            self._await_request(stream_id)

    def _await_request(self, stream_id: int) -> None:
        """A whole answer without a request: it was not captured, or comes a moment later where the capture's times go back."""
        self._unasked.append(stream_id)
        if len(self._unasked) > _MOST_UNASKED:
            oldest = self._unasked.popleft()
            stream = self._live.get(oldest)
            if stream is not None and stream.turn.request_first is None:
                self._close(oldest, stream)

    def _close(self, stream_id: int, stream: Stream) -> None:
        turn = stream.turn
        if not stream.client_ended and turn.request_first is not None:
            self._unfinished[CLIENT] -= 1
        if not stream.server_ended and turn.response_first is not None:
            self._unfinished[SERVER] -= 1
        del self._live[stream_id]
        self._done.add(stream_id)
        self._ledger.close(stream_id)
        if stream.sink is not None:
            stream.sink.finish(turn)
            stream.sink = None
        elif turn.trailers or turn.grpc_status is None:
            turn.grpc_status = status_of(turn.trailers, turn.response_headers)


def _is_interim(section: Section) -> bool:
    return section.status is not None and 100 <= section.status < 200 and section.status != 101


def _set_request(turn: Turn, section: Section, first: Moment, last: Moment) -> None:
    turn.method = section.method
    turn.scheme = section.scheme
    turn.authority = section.authority
    turn.path = section.path
    turn.request_headers = section.fields
    turn.request_first = first
    turn.request_head_last = last
    turn.headers_incomplete |= section.incomplete
    turn.expects_continue = section.expects_continue
