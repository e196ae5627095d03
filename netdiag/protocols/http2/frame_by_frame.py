"""HTTP/2 as an observer sees it: both directions in, one turn per stream out (RFC 9113).

h2 cannot do this: it is an endpoint, with one half of the state of a connection, and it ends the connection at the first frame that a
capture with a gap cannot explain. The two directions are taken in the order in which their chunks were seen, so that windows, limits and
resets meet the frames that they were about; nothing but those depends on that order.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Iterable, Iterator
from dataclasses import replace

from netdiag.protocols.anomalies import AnomalyLog
from netdiag.protocols.conversation import CLIENT, SERVER, Conversation, Http2Facts
from netdiag.protocols.headers import Field, find, make_field
from netdiag.protocols.http2 import frames as h2
from netdiag.protocols.http2.facts import FactsKeeper, settings_of
from netdiag.protocols.http2.hpack_decoder import HpackDecoder, HpackError
from netdiag.protocols.http2.reader import FrameReader
from netdiag.protocols.http2.section import UNKNOWN, Section, assemble
from netdiag.protocols.http2.streams import Stream, Streams
from netdiag.protocols.http2.tunnels import Pipe
from netdiag.protocols.http2.windows import WindowLedger
from netdiag.protocols.turn import Turn
from netdiag.wire.chunk import Chunk, Moment

MAX_CONTINUATIONS = 64
MAX_BLOCK_BYTES = 1 << 20
_KNOWN_TYPES = len(h2.FrameType)


def decode(client: Iterable[Chunk], server: Iterable[Chunk], *, upgraded_from: Turn | None = None) -> Conversation:
    """All turns of one connection. Never raises for what the octets say.

    ``upgraded_from`` is the HTTP/1.1 turn that a 101 answered (h2c): stream 1 then has its request, and takes its place.
    Where events are behind a content coding it is undone, under limits; nothing of the content is kept.
    """
    connection = _Connection()
    if upgraded_from is not None:
        connection.adopt(upgraded_from)
    for side, chunk in _in_order(iter(client), iter(server)):
        connection.readers[side].take(chunk)
    return connection.finish()


def _in_order(client: Iterator[Chunk], server: Iterator[Chunk]) -> Iterator[tuple[int, Chunk]]:
    """Both directions merged by when their octets were first seen; the order inside a direction never changes."""
    from_client, from_server = next(client, None), next(server, None)
    while from_client is not None and from_server is not None:
        if from_client.first_seen_at <= from_server.first_seen_at:
            yield CLIENT, from_client
            from_client = next(client, None)
        else:
            yield SERVER, from_server
            from_server = next(server, None)
    while from_client is not None:
        yield CLIENT, from_client
        from_client = next(client, None)
    while from_server is not None:
        yield SERVER, from_server
        from_server = next(server, None)


class _Connection:
    """What both directions share."""

    def __init__(self) -> None:
        self.log = AnomalyLog("h2")
        self.facts = Http2Facts()
        self.ledger = WindowLedger()
        self.streams = Streams(self.log, self.facts, self.ledger)
        self._keeper = FactsKeeper(self.facts)
        self._sides = _Direction(self, CLIENT), _Direction(self, SERVER)
        self.readers = (
            FrameReader(self._sides[CLIENT], self.log, is_client=True),
            FrameReader(self._sides[SERVER], self.log, is_client=False),
        )

    def adopt(self, upgraded: Turn) -> None:
        turn = replace(upgraded, protocol="h2", stream_id=1, status=None, response_first=None, response_head_last=None)
        turn.response_last = turn.response_body_first = turn.ended = None
        turn.response_headers, turn.response_bytes = (), 0
        turn.interim, turn.events = [], []
        self.streams.adopt(turn)
        for identifier, value in _upgrade_settings(find(upgraded.request_headers, "http2-settings")):
            if identifier == h2.Setting.INITIAL_WINDOW_SIZE and upgraded.request_last is not None:
                self.ledger.initial_window(SERVER, value, upgraded.request_last)

    def settings(self, sender: int, payload: bytes, last: Moment) -> None:
        values = settings_of(payload)
        self._keeper.settings(sender, values, last)
        peer = 1 - sender
        frame_limit = values.get(h2.Setting.MAX_FRAME_SIZE)
        if frame_limit is not None:
            self.readers[peer].max_frame = max(self.readers[peer].max_frame, min(frame_limit, h2.LARGEST_FRAME))
        window = values.get(h2.Setting.INITIAL_WINDOW_SIZE)
        if window is not None and window < 1 << 31:
            self.ledger.initial_window(peer, window, last)

    def settings_acknowledged(self, sender: int, last: Moment) -> None:
        self._keeper.acknowledged(sender, last)

    def goaway(self, sender: int, payload: bytes, last: Moment) -> None:
        said = self._keeper.goaway(sender, payload, last)
        if said is not None:
            self.streams.goaway(sender, *said, last)

    def finish(self) -> Conversation:
        self.streams.finish()
        self.ledger.finish()
        self.facts.preface = self.readers[CLIENT].preface
        self.facts.stalls = self.ledger.stalls
        self.facts.frames = {**self._sides[CLIENT].counts(), **self._sides[SERVER].counts()}
        return Conversation(
            protocol="h2",
            turns=self.streams.turns,
            anomalies=self.log.rows,
            tunnels=self.streams.tunnels.opened(),
            h2=self.facts,
        )


class _Direction:
    """Takes one side's frames (see ``reader.FrameHandler``)."""

    def __init__(self, connection: _Connection, side: int) -> None:
        self._connection = connection
        self._streams = connection.streams
        self._side = side
        self._fields: HpackDecoder[Field, Section] = HpackDecoder(make_field, assemble)
        # A field block under way: (stream, promised stream or 0, END_STREAM, first octet), and its fragments.
        self._block: tuple[int, int, bool, Moment] | None = None
        self._fragments: list[bytes] = []
        self._block_bytes = 0
        self._continuations = 0
        self._block_broken = False
        self._headers_packet: int | None = None
        # The DATA frame under way.
        self._stream: Stream | None = None
        self._pipe: Pipe | None = None
        self._data: tuple[int, int, bool, Moment] | None = None
        self._counts = [0] * 256

    def lost(self) -> None:
        self._fields.lose_history()
        self._streams.tunnels.lost(self._side)
        self._connection.ledger.known[self._side] = False
        self._connection.ledger.known[1 - self._side] = False
        self._block = None
        self._fragments.clear()

    def data_begin(self, flags: int, stream_id: int, length: int, first: Moment) -> bool:
        self._counts[0] += 1
        if self._block is not None:
            self._interrupted()
        stream = self._stream = self._streams.data_begin(self._side, stream_id, length, first) if stream_id else None
        self._data = stream_id, length, bool(flags & h2.Flag.END_STREAM), first
        self._pipe = None if stream is None or stream.tunnel is None else stream.tunnel.pipe(self._side)
        return self._pipe is not None or (stream is not None and stream.sink is not None and self._side == SERVER)

    def data_content(self, octets: bytes, moment: Moment) -> None:
        if self._pipe is not None:
            self._streams.tunnels.carry(self._pipe, octets, moment)
        elif self._stream is not None and self._stream.sink is not None:
            self._stream.sink.feed(octets, moment)

    def data_missing(self, size: int) -> None:
        if self._pipe is not None:
            self._pipe.lose(size)

    def data_end(self, padding: int, missing: int, last: Moment) -> None:
        if self._stream is None or self._data is None:
            return
        stream_id, length, ended, first = self._data
        self._streams.data_end(self._side, stream_id, self._stream, length, padding, missing, first, last, ended)
        self._stream = None

    def frame(
        self, type_: int, flags: int, stream_id: int, payload: bytes | None, first: Moment, last: Moment, length: int
    ) -> None:
        self._counts[type_] += 1
        if self._block is not None and type_ != h2.FrameType.CONTINUATION:
            self._interrupted()
        if type_ == h2.FrameType.HEADERS:
            self._headers(flags, stream_id, payload, first, last, length)
        elif type_ == h2.FrameType.CONTINUATION:
            self._continuation(flags, stream_id, payload, last, length)
        elif type_ == h2.FrameType.PUSH_PROMISE:
            self._push_promise(flags, stream_id, payload, first, last, length)
        elif payload is not None:
            self._control(type_, flags, stream_id, payload, last)

    def _control(self, type_: int, flags: int, stream_id: int, payload: bytes, last: Moment) -> None:
        if type_ == h2.FrameType.WINDOW_UPDATE:
            if len(payload) == 4:
                increment = int.from_bytes(payload, "big") & 0x7FFFFFFF
                self._connection.ledger.update(1 - self._side, stream_id, increment, last)
        elif type_ == h2.FrameType.RST_STREAM:
            if len(payload) == 4:
                self._streams.reset(self._side, stream_id, int.from_bytes(payload, "big"), last)
        elif type_ == h2.FrameType.SETTINGS:
            if flags & h2.Flag.ACK:
                self._connection.settings_acknowledged(self._side, last)
            else:
                self._connection.settings(self._side, payload, last)
        elif type_ == h2.FrameType.GOAWAY:
            self._connection.goaway(self._side, payload, last)

    def counts(self) -> dict[tuple[int, int], int]:
        """Frames by (sender, type)."""
        counts = self._counts if any(self._counts[_KNOWN_TYPES:]) else self._counts[:_KNOWN_TYPES]
        return {(self._side, type_): n for type_, n in enumerate(counts) if n}

    def _headers(
        self, flags: int, stream_id: int, payload: bytes | None, first: Moment, last: Moment, length: int
    ) -> None:
        fragment = _without_padding(payload, flags, 5 if flags & h2.Flag.PRIORITY else 0)
        ended = flags & h2.Flag.END_STREAM != 0
        self._headers_packet = last.delivered_by
        if (
            flags & h2.Flag.END_HEADERS and fragment is not None
        ):  # a whole block in one frame: nothing has to be gathered
            self._hand_over(stream_id, self._decoded(fragment, stream_id, last), first, last, length + 9, ended)
            return
        self._begin_block(stream_id, 0, ended, first)
        self._add_fragment(fragment, length)
        if flags & h2.Flag.END_HEADERS:
            self._end_block(last)

    def _push_promise(
        self, flags: int, stream_id: int, payload: bytes | None, first: Moment, last: Moment, length: int
    ) -> None:
        content = _without_padding(payload, flags, 0)
        promised = int.from_bytes(content[:4], "big") & 0x7FFFFFFF if content is not None and len(content) >= 4 else 0
        self._begin_block(stream_id, promised or -1, False, first)
        self._add_fragment(None if content is None else content[4:], length)
        if flags & h2.Flag.END_HEADERS:
            self._end_block(last)

    def _continuation(self, flags: int, stream_id: int, payload: bytes | None, last: Moment, length: int) -> None:
        if self._block is None or self._block[0] != stream_id:
            self._connection.log.add(f"CONTINUATION on stream {stream_id} continues nothing", packet=last.packet)
            self._fields.lose_history()
            return
        self._continuations += 1
        if self._continuations == MAX_CONTINUATIONS + 1:
            self._connection.log.add(
                f"a field block has more than {MAX_CONTINUATIONS} CONTINUATION frames", packet=last.packet
            )
            self._block_broken = True
        self._add_fragment(payload, length)
        if flags & h2.Flag.END_HEADERS:
            self._end_block(last)

    def _begin_block(self, stream_id: int, promised: int, ended: bool, first: Moment) -> None:
        self._block = stream_id, promised, ended, first
        self._fragments.clear()
        self._block_bytes = 0
        self._continuations = 0
        self._block_broken = False

    def _add_fragment(self, fragment: bytes | None, length: int) -> None:
        self._block_bytes += length + 9
        if fragment is None or self._block_bytes > MAX_BLOCK_BYTES:
            self._block_broken = True
        if self._block_broken:
            self._fragments.clear()
        elif fragment is not None:
            self._fragments.append(fragment)

    def _interrupted(self) -> None:
        """RFC 9113 section 6.10 allows nothing between HEADERS and its CONTINUATIONs."""
        self._connection.log.add("a field block is interrupted by another frame")
        self._block = None
        self._fragments.clear()
        self._fields.lose_history()

    def _end_block(self, last: Moment) -> None:
        assert self._block is not None
        stream_id, promised, ended, first = self._block
        self._block = None
        if self._block_broken:
            self._fields.lose_history()
            section = UNKNOWN
        else:
            section = self._decoded(b"".join(self._fragments), stream_id, last)
        if not promised:
            self._hand_over(stream_id, section, first, last, self._block_bytes, ended)
        elif promised > 0 and stream_id:
            self._streams.promise(promised, section, first, last, self._block_bytes)

    def _hand_over(
        self, stream_id: int, section: Section, first: Moment, last: Moment, octets: int, ended: bool
    ) -> None:
        if not stream_id:
            return
        if self._side == CLIENT:
            self._streams.request(stream_id, section, first, last, octets, ended, self._headers_packet)
        else:
            self._streams.response(stream_id, section, first, last, octets, ended)

    def _decoded(self, block: bytes, stream_id: int, last: Moment) -> Section:
        try:
            section = self._fields.decode(block)
        except HpackError as error:
            self._connection.log.add(f"HPACK on stream {stream_id}: {error}", packet=last.packet)
            return UNKNOWN
        if section.over_limit:
            reason = f"the field section on stream {stream_id} is above the limits; the rest is left out"
            self._connection.log.add(reason, packet=last.packet)
        return section


def _without_padding(payload: bytes | None, flags: int, skipped: int) -> bytes | None:
    """The field block fragment of HEADERS or PUSH_PROMISE; None where it cannot be told."""
    if payload is None or not flags & (h2.Flag.PADDED | h2.Flag.PRIORITY):
        return payload
    start, end = skipped, len(payload)
    if flags & h2.Flag.PADDED:
        if not payload:
            return None
        start += 1
        end -= payload[0]
    return payload[start:end] if start <= end else None


def _upgrade_settings(value: str | None) -> list[tuple[int, int]]:
    """RFC 7540 section 3.2.1: a SETTINGS payload in base64url."""
    if not value:
        return []
    try:
        payload = urlsafe_b64decode(value + "=" * (-len(value) % 4))
    except ValueError:
        return []
    return list(settings_of(payload).items())
