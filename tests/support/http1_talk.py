"""One connection's HTTP/1 turns for a test."""

from __future__ import annotations

from netdiag.protocols import http1
from netdiag.protocols.turn import Turn
from netdiag.wire.chunk import Chunk
from tests.support.http_bytes import MS, head

GET = head("GET /a HTTP/1.1\nHost: example.com")
OK_5 = head("HTTP/1.1 200 OK\nContent-Length: 5")


def ms(moment: object) -> float | None:
    return None if moment is None else moment.deliverable_at / MS  # type: ignore[attr-defined]


def one(client: list[Chunk], server: list[Chunk]) -> Turn:
    conversation = http1.decode(client, server)
    assert len(conversation.turns) == 1
    return conversation.turns[0]
