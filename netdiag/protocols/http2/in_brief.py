"""Whole HTTP/2 conversations of a few requests in which nothing is out of the ordinary, read for the moments of their messages alone.

Regular is what ``frame_by_frame`` would read without a remark: all octets are there, every frame is whole and every header block in one, no
stream is reset, promised or refused, and every request is answered to its end. Blocks repeat from connection to connection, so what the same
ones say one after the other is worked out once. Everything else is for ``frame_by_frame``, many requests for ``columns``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from netdiag.protocols.brief_turn import KEPT, Brief, BriefTurn, Octets
from netdiag.protocols.event_body import wants_report
from netdiag.protocols.first_events import Content, FirstEvents, content_of, firsts_of
from netdiag.protocols.grpc import status_of
from netdiag.protocols.headers import Field, make_field
from netdiag.protocols.http2 import frames as h2
from netdiag.protocols.http2.hpack_decoder import HpackDecoder, HpackError
from netdiag.protocols.http2.section import Section, assemble
from netdiag.protocols.retry_marks import bears_mark
from netdiag.records.exchange import CONNECT
from netdiag.wire.tables import NONE

MOST_REQUESTS = 64
"""Of one connection: what a request costs here is more than by columns."""
_MOST_FRAMES = 4096
"""Of HEADERS and DATA in one direction."""
_LONGEST_BLOCKS_BYTES = 4096
"""Longer ones are rarely repeated."""
_DATA, _HEADERS, _SETTINGS, _GOAWAY = (
    int(kind) for kind in (h2.FrameType.DATA, h2.FrameType.HEADERS, h2.FrameType.SETTINGS, h2.FrameType.GOAWAY)
)
_ODD = frozenset({h2.FrameType.RST_STREAM, h2.FrameType.PUSH_PROMISE, h2.FrameType.CONTINUATION})
_PRIORITY_BYTES = 5
_LEAST_GOAWAY_BYTES = 8
_STREAM_ID = 0x7FFFFFFF


def turns(client: Octets, server: Octets) -> Brief | None:
    """All turns of a connection; None where it is not regular."""
    if not client.data.startswith(h2.PREFACE):
        return None
    asked, answered = _frames(client.data, len(h2.PREFACE)), _frames(server.data, 0)
    if asked is None or answered is None or not answered.begins_with_settings:
        return None
    requests = _requests(client, asked)
    if not requests or answered.last_stream < max(requests):
        return None
    found = _answers(server, answered, requests)
    if found is None:
        return None
    settings = NONE if answered.settings_end == NONE else server.chunk(answered.settings_end - 1)
    return Brief([found[stream_id] for stream_id in requests], settings)


_Frame = tuple[int, bytes | None, int, int, int, bool]
"""HEADERS or DATA: stream, whole header block (None for DATA), where it begins, where its content begins, where it ends, END_STREAM."""


class _Frames(NamedTuple):
    """One direction's."""

    rows: list[_Frame]
    blocks: tuple[bytes, ...]
    begins_with_settings: bool
    settings_end: int
    """Where the first SETTINGS that is no ACK ends; NONE without."""
    last_stream: int
    """The least that a GOAWAY lets go on."""


def _frames(data: bytes, at: int) -> _Frames | None:
    """None where a frame is odd, or not whole."""
    rows: list[_Frame] = []
    settings_end, last_stream, size = NONE, _STREAM_ID, len(data)
    first_kind = data[at + 3 : at + 4] + data[at + 5 : at + 9]
    while at < size:
        if size - at < h2.FRAME_HEADER.size:
            return None
        high, low, kind, flags, stream_id = h2.FRAME_HEADER.unpack_from(data, at)
        begin = at + h2.FRAME_HEADER.size
        end = begin + (high << 8 | low)
        if end > size or end - begin > h2.DEFAULT_MAX_FRAME or kind in _ODD:
            return None
        if kind <= _HEADERS:
            row = _message_frame(data, kind, flags, stream_id & _STREAM_ID, at, begin, end)
            if row is None or len(rows) >= _MOST_FRAMES:
                return None
            rows.append(row)
        elif kind == _SETTINGS and settings_end == NONE and not flags & h2.Flag.ACK:
            settings_end = end
        elif kind == _GOAWAY and end - begin >= _LEAST_GOAWAY_BYTES:
            last_stream = min(last_stream, int.from_bytes(data[begin : begin + 4], "big") & _STREAM_ID)
        at = end
    blocks = tuple(block for _, block, *_ in rows if block is not None)
    return _Frames(rows, blocks, first_kind == b"\x04\0\0\0\0", settings_end, last_stream)


def _message_frame(data: bytes, kind: int, flags: int, stream_id: int, at: int, begin: int, end: int) -> _Frame | None:
    ends_stream = bool(flags & h2.Flag.END_STREAM)
    if flags & h2.Flag.PADDED or not stream_id:
        return None
    if kind == _DATA:
        return stream_id, None, at, begin, end, ends_stream
    start = begin + (_PRIORITY_BYTES if flags & h2.Flag.PRIORITY else 0)
    if not flags & h2.Flag.END_HEADERS or start > end:
        return None
    return stream_id, data[start:end], at, start, end, ends_stream


class _Request(NamedTuple):
    first: int
    last: int
    """NONE until it has ended."""
    asks: _Asks


class _Asks(NamedTuple):
    """What the head of a request says."""

    wants_report: bool
    """Its answer may end with a usage report."""
    marked: bool
    """As ``retry_marks.bears_mark``."""


def _requests(client: Octets, frames: _Frames) -> dict[int, _Request] | None:
    """By stream, in their order; None where one does not end, or is no plain request."""
    if len(frames.blocks) > MOST_REQUESTS:
        return None
    asked = _request_sections(frames.blocks)
    if asked is None:
        return None
    found: dict[int, _Request] = {}
    highest = 0
    told = iter(asked)
    for stream_id, block, at, _, end, ends_stream in frames.rows:
        last = client.chunk(end - 1) if ends_stream else NONE
        begun = found.get(stream_id)
        if block is not None:
            if stream_id <= highest or not stream_id & 1:
                return None
            highest = stream_id
            found[stream_id] = _Request(client.chunk(at), last, next(told))
        elif begun is None or begun.last != NONE:
            return None
        elif ends_stream:
            found[stream_id] = begun._replace(last=last)
    return found if all(request.last != NONE for request in found.values()) else None


class _Answer:
    """One that has begun."""

    __slots__ = ("ended", "first", "firsts", "status")

    def __init__(self, status: int, first: int, firsts: FirstEvents | None) -> None:
        self.status, self.first, self.firsts = status, first, firsts
        self.ended = NONE

    @property
    def is_whole(self) -> bool:
        """It has ended, and its content could be read."""
        return self.ended != NONE and (self.firsts is None or not self.firsts.asks_for_more)


def _answers(server: Octets, frames: _Frames, requests: dict[int, _Request]) -> dict[int, BriefTurn] | None:
    """By stream; None where one is missing, does not end, or says more than moments."""
    sections = _response_sections(frames.blocks)
    if sections is None:
        return None
    told = iter(sections)
    begun: dict[int, _Answer] = {}
    for stream_id, block, at, begin, end, ends_stream in frames.rows:
        answer, request = begun.get(stream_id), requests.get(stream_id)
        if request is None or (answer is not None and answer.ended != NONE):
            return None
        if block is not None:
            section = next(told)
            if answer is None:
                if section.status == NONE:
                    return None
                firsts = None if ends_stream else firsts_of(section.content, to_report=request.asks.wants_report)
                answer = begun[stream_id] = _Answer(section.status, server.chunk(at), firsts)
            elif section.status != NONE or not ends_stream:
                return None
        elif answer is None:
            return None
        elif answer.firsts is not None:
            server.feed(answer.firsts, begin, end)
        if ends_stream:
            answer.ended = server.chunk(end - 1)
    if len(begun) < len(requests) or not all(answer.is_whole for answer in begun.values()):
        return None
    return {stream_id: _turn(requests[stream_id], answer) for stream_id, answer in begun.items()}


def _turn(request: _Request, answer: _Answer) -> BriefTurn:
    firsts = answer.firsts
    told = (NONE, NONE, NONE) if firsts is None else (firsts.event, firsts.token, firsts.visible)
    return BriefTurn(
        "h2", answer.status, request.asks.marked, request.first, request.last, answer.first, answer.ended, *told
    )


class _Response(NamedTuple):
    status: int
    """NONE for trailers."""
    content: Content


def _read_requests(blocks: tuple[bytes, ...]) -> tuple[_Asks, ...] | None:
    """None where one is more than a plain request."""
    sections = _sections(blocks)
    if sections is None or not all(_is_plain(section) for section in sections):
        return None
    return tuple(_Asks(wants_report(section.path), bears_mark(section.fields)) for section in sections)


def _is_plain(section: Section) -> bool:
    return section.method not in (None, CONNECT) and not section.expects_continue


def _read_responses(blocks: tuple[bytes, ...]) -> tuple[_Response, ...] | None:
    """None where one is interim, gRPC's, or has content that must be read in full."""
    sections = _sections(blocks)
    if sections is None:
        return None
    found: list[_Response] = []
    for section in sections:
        status, fields = section.status, section.fields
        content = content_of(fields)
        if content is None or status_of(fields) is not None or (status is not None and status < 200):
            return None
        found.append(_Response(NONE if status is None else status, content))
    return tuple(found)


def _sections(blocks: tuple[bytes, ...]) -> list[Section] | None:
    """What the blocks of one direction say from its first on; None where that is not all known."""
    decoder: HpackDecoder[Field, Section] = HpackDecoder(make_field, assemble)
    try:
        found = decoder.decode_all(blocks)
    except HpackError:
        return None
    return None if any(section.incomplete or section.over_limit for section in found) else found


_kept_requests = lru_cache(maxsize=KEPT)(_read_requests)
_kept_responses = lru_cache(maxsize=KEPT)(_read_responses)


def _request_sections(blocks: tuple[bytes, ...]) -> tuple[_Asks, ...] | None:
    return _kept_requests(blocks) if _is_short(blocks) else _read_requests(blocks)


def _response_sections(blocks: tuple[bytes, ...]) -> tuple[_Response, ...] | None:
    return _kept_responses(blocks) if _is_short(blocks) else _read_responses(blocks)


def _is_short(blocks: tuple[bytes, ...]) -> bool:
    return sum(map(len, blocks)) <= _LONGEST_BLOCKS_BYTES
