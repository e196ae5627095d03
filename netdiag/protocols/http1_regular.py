"""Whole HTTP/1 conversations in which nothing is out of the ordinary, read for the moments of their messages alone.

Regular is what ``http1.decode`` would read without a remark: all octets are there, every start-line lies in one chunk, every request is
answered, and each body's end is told by its own framing. Heads repeat from connection to connection, so what the same octets say is worked
out once. Everything else is for ``http1``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from netdiag.protocols import http1_head as heads
from netdiag.protocols.brief_turn import KEPT, Brief, BriefTurn, Octets
from netdiag.protocols.event_body import wants_report
from netdiag.protocols.first_events import Content, FirstEvents, content_of, firsts_of
from netdiag.protocols.http1_head import FieldSection, Framing
from netdiag.protocols.redact import redact_target
from netdiag.protocols.retry_marks import bears_mark
from netdiag.protocols.stream_reader import end_of_head
from netdiag.records.exchange import CONNECT
from netdiag.wire.tables import NONE

_END = b"\r\n\r\n"
_MOST_HEAD_BYTES = 64 << 10
_LONGEST_KEPT_BYTES = 2048
"""Longer ones are rarely repeated."""
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})\r\n")


def turns(client: Octets, server: Octets) -> Brief | None:
    """All turns of a connection; None where it is not regular."""
    asks, answers = _Messages(client), _Messages(server)
    found: list[BriefTurn] = []
    while not asks.ended:
        turn = _turn(asks, answers)
        if turn is None:
            return None
        found.append(turn)
    return Brief(found) if answers.ended else None


def _turn(asks: _Messages, answers: _Messages) -> BriefTurn | None:
    head = asks.head()
    request = None if head is None else _request(head)
    if request is None:
        return None
    asked = asks.chunk
    if request.framing is not Framing.EMPTY and not asks.pass_body(request.framing, request.length):
        return None
    asked_to = asks.last_chunk
    head = answers.head()
    response = None if head is None else _response(head)
    if response is None:
        return None
    answered = answers.chunk
    framing = Framing.EMPTY if request.is_head else response.framing
    firsts = None if framing is Framing.EMPTY else firsts_of(response.content, to_report=request.wants_report)
    if framing is not Framing.EMPTY and not answers.pass_body(framing, response.length, firsts):
        return None
    if firsts is not None and firsts.asks_for_more:
        return None
    told = (NONE, NONE, NONE) if firsts is None else (firsts.event, firsts.token, firsts.visible)
    said_of_it = request.protocol, response.status, request.marked
    return BriefTurn(*said_of_it, asked, asked_to, answered, answers.last_chunk, *told)


class _Messages:
    """One direction, read message by message."""

    __slots__ = ("_at", "_data", "_octets", "chunk")

    def __init__(self, octets: Octets) -> None:
        self._octets, self._data = octets, octets.data
        self._at = 0
        self.chunk = 0
        """The one with the octet at hand."""

    @property
    def ended(self) -> bool:
        """Nothing is left."""
        return self._at >= len(self._data)

    @property
    def last_chunk(self) -> int:
        """The one with the octet read last."""
        return self._octets.chunk(self._at - 1)

    def head(self) -> bytes | None:
        """The head that begins here; None where it does not end, or its start-line not in the same chunk. ``chunk`` is the one it begins in."""
        if self.ended:
            return None
        data, begin = self._data, self._at
        self.chunk = self._octets.chunk(begin)
        chunk_end = self._octets.ends[self.chunk]
        end = data.find(_END, begin, begin + _MOST_HEAD_BYTES)
        if end < 0 or (end + len(_END) > chunk_end and data.find(b"\n", begin, chunk_end) < 0):
            return None
        self._at = end + len(_END)
        return data[begin : self._at]

    def pass_body(self, framing: Framing, length: int, firsts: FirstEvents | None = None) -> bool:
        """Go behind the body; False where it does not end as its framing says."""
        if framing is Framing.CHUNKED:
            return self._pass_chunks(firsts)
        begin, self._at = self._at, self._at + length
        if self._at > len(self._data):
            return False
        if firsts is not None:
            self._octets.feed(firsts, begin, self._at)
        return True

    def _pass_chunks(self, firsts: FirstEvents | None) -> bool:
        """RFC 9112 section 7.1, without extensions and trailers."""
        data, at = self._data, self._at
        while (line := _CHUNK_LINE.match(data, at)) is not None:
            begin = line.end()
            at = begin + int(line[1], 16)
            if data[at : at + 2] != b"\r\n":
                return False
            if at == begin:  # the last chunk, and the empty line where trailers would be
                self._at = at + 2
                return True
            if firsts is not None:
                self._octets.feed(firsts, begin, at)
            at += 2
        return False


class _Request(NamedTuple):
    protocol: str
    framing: Framing
    length: int
    is_head: bool
    wants_report: bool
    """Its answer may end with a usage report."""
    marked: bool
    """As ``retry_marks.bears_mark``."""


class _Response(NamedTuple):
    status: int
    framing: Framing
    length: int
    content: Content


def _read_request(head: bytes) -> _Request | None:
    """None for whatever says more than where its body ends."""
    line, section = _split(head)
    start = heads.parse_request_line(line)
    if start is None or section is None or section.expects_continue or section.delimiter is Framing.CODED:
        return None
    method, target, protocol = start
    if protocol == heads.SIMPLE or method == CONNECT or not target.startswith("/"):
        return None
    framing = section.delimiter or Framing.EMPTY
    is_head, to_report = method == "HEAD", wants_report(redact_target(target))
    return _Request(protocol, framing, section.length, is_head, to_report, bears_mark(section.fields))


def _read_response(head: bytes) -> _Response | None:
    """None for whatever says more than its status and where its body ends."""
    line, section = _split(head)
    start = heads.parse_status_line(line)
    if start is None or section is None or start[0] < 200 or not heads.is_regular_status_line(line):
        return None
    status, fields = start[0], section.fields
    if status in (204, 304):
        return _Response(status, Framing.EMPTY, 0, Content())
    content = content_of(fields)
    if content is None or section.delimiter not in (Framing.LENGTH, Framing.CHUNKED):
        return None
    return _Response(status, section.delimiter, section.length, content)


_kept_request = lru_cache(maxsize=KEPT)(_read_request)
_kept_response = lru_cache(maxsize=KEPT)(_read_response)


def _request(head: bytes) -> _Request | None:
    return _kept_request(head) if len(head) <= _LONGEST_KEPT_BYTES else _read_request(head)


def _response(head: bytes) -> _Response | None:
    return _kept_response(head) if len(head) <= _LONGEST_KEPT_BYTES else _read_response(head)


def _split(head: bytes) -> tuple[bytes, FieldSection | None]:
    """The start-line, and the fields where there is nothing wrong with them (and the first empty line is the head's last)."""
    line, _, rest = head.partition(b"\n")
    section = heads.read_section(rest) if end_of_head(head, 0) == len(head) else None
    sound = section is not None and not section.problems and section.delimiter is not Framing.UNKNOWN
    return line.removesuffix(b"\r"), section if sound else None
