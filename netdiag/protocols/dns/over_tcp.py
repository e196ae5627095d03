"""DNS over TCP (RFC 7766): messages behind a length of two octets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from netdiag.protocols.dns.message import DnsMessage, decode_message
from netdiag.protocols.dns.timed import UNSPECIFIED, TimedMessage
from netdiag.wire.chunk import Chunk


def tcp_messages(client: Iterable[Chunk], server: Iterable[Chunk]) -> list[TimedMessage]:
    """Messages of both directions of DNS over TCP (RFC 7766 section 8) in the order in which they were delivered.

    A direction ends at a gap and at octets that are no message. A stream does not know its endpoints: ``TimedMessage.between`` puts them in.
    """
    found = [
        TimedMessage(message, UNSPECIFIED, UNSPECIFIED, chunk.deliverable_at, chunk.last_packet, "tcp")
        for direction in (client, server)
        for message, chunk in _direction(direction)
    ]
    return sorted(found, key=lambda m: m.at)


def _direction(chunks: Iterable[Chunk]) -> Iterator[tuple[DnsMessage, Chunk]]:
    held = bytearray()
    for chunk in chunks:
        if chunk.missing_before:
            return
        held += chunk.data
        pos = 0
        while pos + 2 <= len(held):
            size = held[pos] << 8 | held[pos + 1]
            if pos + 2 + size > len(held):
                break
            message = decode_message(bytes(held[pos + 2 : pos + 2 + size]))
            if message is None:
                return
            yield message, chunk
            pos += 2 + size
        del held[:pos]
