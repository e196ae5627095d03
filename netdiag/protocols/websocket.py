"""WebSocket frames after the upgrade (RFC 6455 section 5): when messages began and ended, how large they were; never what they said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from netdiag.protocols.stream_reader import StreamReader
from netdiag.wire.chunk import Chunk, Moment

_LARGEST_FRAME = 1 << 40


class Opcode(IntEnum):
    """RFC 6455 section 11.8."""

    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


@dataclass(frozen=True, slots=True)
class WebSocketFrame:
    """One frame of one direction."""

    opcode: int
    final: bool
    """FIN: the message ends here."""
    payload_bytes: int
    first: Moment
    last: Moment
    close_code: int | None = None
    """Of a close frame that is not masked."""


def frames(chunks: Iterable[Chunk]) -> Iterator[WebSocketFrame]:
    """The frames of one direction, payload passed over without a copy. Ends at a gap inside a header and at octets that are no frame."""
    reader = StreamReader(chunks)
    while reader.more():
        first = reader.first_moment()
        head = _take(reader, 2)
        if head is None or head[0] & 0x70 & ~0x40:
            return
        length, masked = head[1] & 0x7F, head[1] & 0x80
        if length >= 126:
            extended = _take(reader, 2 if length == 126 else 8)
            if extended is None:
                return
            length = int.from_bytes(extended, "big")
        if length > _LARGEST_FRAME or (masked and _take(reader, 4) is None):
            return
        code = None
        opcode, left = head[0] & 0xF, length
        if opcode == Opcode.CLOSE and not masked and length >= 2:
            octets = _take(reader, 2)
            if octets is None:
                return
            code, left = int.from_bytes(octets, "big"), length - 2
        if sum(reader.skip(left)) < left:
            return
        yield WebSocketFrame(opcode, bool(head[0] & 0x80), length, first, reader.last_moment(), code)


def _take(reader: StreamReader, count: int) -> bytes | None:
    out = b""
    while len(out) < count:
        if not reader.more():
            return None
        out += reader.take(count - len(out))
    return out
