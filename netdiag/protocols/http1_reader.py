"""One direction of an HTTP/1 connection: heads and bodies in order, and the way back after octets were lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from netdiag.protocols import http1_head as heads
from netdiag.protocols.anomalies import AnomalyLog
from netdiag.protocols.headers import Field, printable
from netdiag.protocols.http1_head import Framing, Head
from netdiag.protocols.stream_reader import Sink, StreamReader, end_of_head
from netdiag.wire.chunk import Chunk, Moment

_MAX_LINE_BYTES = 64 << 10
_MAX_CHUNK_LINE_BYTES = 8 << 10
_HEXADECIMAL = b"0123456789abcdefABCDEF"


@dataclass(slots=True)
class Body:
    """What was read of one body."""

    framing: Framing
    whole: bool = False
    """Its end was reached by its own framing; False where octets or the end are missing."""
    octets: int = 0
    """Content, without chunk framing."""
    wire_octets: int = 0
    missing: int = 0
    first: Moment | None = None
    last: Moment | None = None
    """Of the last octet of the message (the last chunk's line end, the trailers' end), or of the last one seen."""
    trailers: tuple[Field, ...] = ()


class MessageReader:
    """Reads one direction's messages. ``requests`` says which kind of start-line they have."""

    def __init__(self, chunks: Iterable[Chunk], log: AnomalyLog, *, requests: bool) -> None:
        self.reader = StreamReader(chunks)
        self._log = log
        self._in_sync = True
        self._lost = False
        self._peeked: Head | None = None
        self._parse_line: Callable[[bytes], Any] = heads.parse_request_line if requests else heads.parse_status_line
        self._start = heads.REQUEST_START if requests else heads.STATUS_START
        self._start_cut = heads.REQUEST_START_CUT if requests else heads.STATUS_START_CUT
        self._may_begin = heads.may_begin_request if requests else heads.may_begin_status
        self._requests = requests

    def peek(self) -> Head | None:
        """The next head, left for ``take``; None when no more come."""
        if self._peeked is None:
            self._peeked = self._read_head()
        return self._peeked

    def take(self) -> Head | None:
        """The next head."""
        head = self.peek()
        self._peeked = None
        return head

    def starts_message(self) -> bool:
        """Whether the octets at hand are a complete start-line."""
        return self.reader.more() and self.reader.matches(self._start)

    def read_headless(self, sink: Sink | None = None) -> Body | None:
        """An HTTP/0.9 answer: content without a head, until the connection ends. None when what comes is no such thing."""
        if self._peeked is not None or not self._in_sync or not self.reader.more():
            return None
        if self._may_begin(self.reader.rest_of_chunk()[:9].partition(b"\n")[0]):
            return None
        return self.read_body(Framing.UNTIL_CLOSE, 0, sink)

    def _read_head(self) -> Head | None:
        while True:
            if not self._in_sync and not self._find_start():
                return None
            if not self._skip_line_ends():
                if self.reader.ended:
                    return None
                self._lose(None)
                continue
            head = self._parse_head()
            if head is not None:
                head.resynchronised, self._lost = self._lost, False
                return head

    def _skip_line_ends(self) -> bool:
        """RFC 9112 section 2.2: empty lines before a start-line are ignored. False when there is no octet after them."""
        reader = self.reader
        while reader.more():
            if reader.next_octet() not in b"\r\n":
                return True
            reader.skip_any(b"\r\n")
        return False

    def _find_start(self) -> bool:
        """Leave octets out until a chunk begins with a start-line. Never a guess from the middle of a chunk: that could be content."""
        reader = self.reader
        while True:
            if not reader.more():
                if reader.ended:
                    return False
                reader.cross_gap()
                continue
            if self._chunk_begins_message():
                self._in_sync = True
                return True
            reader.drop_chunk()

    def _chunk_begins_message(self) -> bool:
        reader = self.reader
        return reader.at_chunk_start and (reader.matches(self._start) or reader.matches(self._start_cut))

    def _lose(self, reason: str | None) -> None:
        """The place in the message sequence is not known any more."""
        if reason is not None:
            self._log.add(reason, packet=self.reader.packet, offset=self.reader.offset)
        self._in_sync = False
        self._lost = True

    def _parse_head(self) -> Head | None:
        reader = self.reader
        first, offset, packet = reader.first_moment(), reader.offset, reader.packet
        octets, complete = self._head_octets()
        line, line_end, rest = octets.partition(b"\n")
        start = self._parse_line(line.removesuffix(b"\r"))
        if not line_end and start is not None and heads.SIMPLE in start:
            start = heads.parse_cut_request_line(octets)  # the beginning of a longer line
        if start is None:
            self._lose(None)
            if octets:
                self._log.add(
                    f"expected a {'request' if self._requests else 'status'}-line, found {printable(octets)}",
                    packet=packet,
                    offset=offset,
                )
            return None
        if start is not None and heads.SIMPLE in start and not rest and reader.ended:
            complete = True  # HTTP/0.9: the line is the whole request
        section = heads.read_section(rest if complete else rest[: rest.rfind(b"\n") + 1])
        for problem in section.problems:
            self._log.add(problem, packet=packet, offset=offset)
        if not complete:
            self._lose("a head is not complete: octets are missing")
        head = Head("", section, first, reader.last_moment(), len(octets), offset, complete=complete)
        if self._requests:
            head.method, head.target, head.version = start
            if head.version == heads.SIMPLE:
                self._log.add(
                    f"a request-line without a valid version: {printable(line)}", packet=packet, offset=offset
                )
        else:
            head.status, head.version = start
            if not heads.is_regular_status_line(line.removesuffix(b"\r")):
                self._log.add(
                    f"a status-line without a valid version or status: {printable(line)}", packet=packet, offset=offset
                )
        return head

    def _head_octets(self) -> tuple[bytes, bool]:
        """Octets of one head and whether it is whole. Stops early where its first line cannot be a start-line."""
        reader = self.reader
        whole = reader.take_head()
        if whole is not None:
            return whole, True
        held = bytearray()
        line_checked = False
        while reader.more():
            octets = reader.rest_of_chunk()
            # What is held is no head when this is one; a method cut in two ("UN" + "LOCK …") only looks like it.
            if b" " in held and not line_checked and self._start.match(octets):
                break
            searched = max(0, len(held) - 3)
            before = len(held)
            held += octets
            if not line_checked:
                line_end = held.find(b"\n", max(0, before - 1))
                line_checked = line_end >= 0
                if not self._plausible(held, line_end):
                    reader.drop_chunk()
                    break
            end = end_of_head(held, searched)
            if end >= 0:
                reader.take(end - before)
                return bytes(held[:end]), True
            reader.drop_chunk()
            if len(held) > heads.MAX_HEAD_BYTES:
                break
        return bytes(held), False

    def _plausible(self, held: bytearray, line_end: int) -> bool:
        if line_end >= 0:
            return self._parse_line(bytes(held[:line_end]).removesuffix(b"\r")) is not None
        return len(held) <= _MAX_LINE_BYTES and self._may_begin(bytes(held))

    def read_body(self, framing: Framing, length: int, sink: Sink | None = None) -> Body:
        """The body that follows the head just taken."""
        body = Body(framing)
        if framing is Framing.EMPTY or (framing is Framing.LENGTH and length == 0):
            body.whole = True
        elif framing is Framing.LENGTH:
            body.whole = self._read_counted(body, length, sink)
            body.wire_octets = body.octets
            self._after(body, f"a body of {length} octets ends after {body.octets}")
        elif framing is Framing.CHUNKED:
            body.whole = self._read_chunked(body, sink)
            self._after(body, "a chunked body does not end")
        else:
            self._read_open(body, sink, until_start=framing is Framing.UNKNOWN)
            body.wire_octets = body.octets
        return body

    def _after(self, body: Body, reason: str) -> None:
        if not body.whole and not self.reader.ended:
            self._lose(reason)
        elif self.reader.crossed_gap:
            self.reader.crossed_gap = False

    def _read_counted(self, body: Body, length: int, sink: Sink | None) -> bool:
        """``length`` octets of content."""
        reader = self.reader
        if body.first is None and reader.more():
            body.first = reader.first_moment()
        read, missing = reader.skip(length, sink)
        body.octets += read + missing
        body.missing += missing
        if read:
            body.last = reader.last_moment()
        return read + missing == length

    def _read_chunked(self, body: Body, sink: Sink | None) -> bool:
        """RFC 9112 section 7.1."""
        reader = self.reader
        while True:
            while reader.more() and self._chunk_at_hand(body, sink):
                pass
            line = reader.read_until(b"\n", _MAX_CHUNK_LINE_BYTES)
            size = None if line is None else _chunk_size(line)
            if line is None or size is None:
                return False
            body.wire_octets += len(line)
            if size == 0:
                body.last = reader.last_moment()
                return self._read_trailers(body)
            before = body.octets
            whole = self._read_counted(body, size, sink)
            body.wire_octets += body.octets - before
            if not whole:
                return False
            end = reader.read_until(b"\n", 2)
            if end is None or end.strip(b"\r\n"):
                return False
            body.wire_octets += len(end)
            body.last = reader.last_moment()

    def _chunk_at_hand(self, body: Body, sink: Sink | None) -> bool:
        """One chunk all of which is in the octets at hand, as nearly every one of a stream of events is."""
        reader = self.reader
        octets, begin = reader.at_hand()
        line_end = octets.find(b"\n", begin) + 1
        size = _chunk_size(octets[begin:line_end]) if line_end else None
        if not size:
            return False
        content_end = line_end + size
        end = content_end + (2 if octets.startswith(b"\r", content_end) else 1)
        if not octets.startswith(b"\n", end - 1):
            return False
        reader.go_to(end)
        body.first = body.first or reader.first_moment()
        body.last = reader.last_moment()
        body.octets += size
        body.wire_octets += end - begin
        if sink is not None:
            sink.feed(octets[line_end:content_end], body.last)
        return True

    def _read_trailers(self, body: Body) -> bool:
        reader = self.reader
        lines: list[bytes] = []
        size = 0
        while size <= heads.MAX_HEAD_BYTES:
            line = reader.read_until(b"\n", _MAX_LINE_BYTES)
            if line is None:
                return False
            size += len(line)
            body.last = reader.last_moment()
            if not line.strip(b"\r\n"):
                body.trailers = heads.parse_fields(lines, [])
                body.wire_octets += size
                return True
            lines.append(line.rstrip(b"\r\n"))
        return False

    def _read_open(self, body: Body, sink: Sink | None, *, until_start: bool) -> None:
        """Until the connection's end; or, where the framing is not known, until a chunk begins with a start-line."""
        reader = self.reader
        if until_start:
            if self._in_sync and reader.more() and reader.matches(self._start):
                return  # no body at all
            self._lose(None)
        while not reader.ended:
            if not reader.more():
                if reader.gap is not None:
                    body.missing += max(0, reader.gap)
                    body.octets += max(0, reader.gap)
                    reader.cross_gap()
                continue
            if until_start and self._chunk_begins_message():
                return
            if body.first is None:
                body.first = reader.first_moment()
            piece = None if sink is None else reader.rest_of_chunk()
            body.octets += reader.drop_chunk()
            body.last = reader.last_moment()
            if sink is not None and piece is not None:
                sink.feed(piece, body.last)
        body.whole = not until_start


def _chunk_size(line: bytes) -> int | None:
    """RFC 9112 section 7.1: hexadecimal, extensions after a semicolon ignored."""
    digits = line.partition(b";")[0].strip()
    if not 0 < len(digits) <= 15 or digits.strip(_HEXADECIMAL):
        return None
    return int(digits, 16)
