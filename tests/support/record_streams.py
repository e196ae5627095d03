"""TLS records over TCP: made, sent in segments of any size, and found again."""

from __future__ import annotations

import random

from netdiag.wire.streams import record_views, rows_of
from netdiag.wire.tls_records import chain
from tests.support.conversation import Conversation, Wire

HELLO = b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"


def record(length: int, *, kind: int = 23, seed: int = 0) -> bytes:
    """One record with random content."""
    content = random.Random(seed + length).randbytes(length)
    return bytes([kind, 3, 3]) + length.to_bytes(2, "big") + content


def spread(talk: Conversation, side: int, octets: bytes, sizes: list[int]) -> None:
    """``octets`` in segments of the given sizes, over and over."""
    at = turn = 0
    while at < len(octets):
        size = sizes[turn % len(sizes)]
        talk.say(side, octets[at : at + size])
        at, turn = at + size, turn + 1


def found(wire: Wire, side: int, connection: int = 0) -> list[tuple[int, int, int]]:
    """(stream offset, type, length) of each record of one direction."""
    table = chain(wire.buffer, wire.segments)
    part = table.take(rows_of(table, connection, side))
    return list(zip(part.stream_offset.tolist(), part.content_type.tolist(), part.length.tolist(), strict=True))


def contents(wire: Wire, side: int, connection: int = 0) -> list[bytes]:
    table = chain(wire.buffer, wire.segments)
    return [v.fragment() for v in record_views(wire.buffer, wire.segments, table, rows_of(table, connection, side))]
