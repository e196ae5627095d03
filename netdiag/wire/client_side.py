"""Which end of a connection is the client, and how that is known."""

from __future__ import annotations

import re
from enum import IntEnum

import numpy as np

from netdiag.wire.octets import Octets
from netdiag.wire.options import shows_tcp_header
from netdiag.wire.tables import Buffer, Int64, Packets, UInt8
from netdiag.wire.tcp_flags import ACK, SYN

_UNDECIDED = 255
_PEEKED_PACKETS = 8
"""Packets with payload whose first octets are looked at when no handshake was captured: a kept-alive connection shows its next request soon."""
_PEEKED_BYTES = 16
"""Of each, and of what a direction says in all (the first message may come in tiny segments)."""
_HTTP_REQUEST = re.compile(rb"(GET|HEAD|POST|PUT|DELETE|CONNECT|OPTIONS|TRACE|PATCH) [^ \r\n]|PRI \* HTTP/2")
_HTTP_RESPONSE = re.compile(rb"HTTP/1\.[01] [1-5]")
_TLS_HELLO = re.compile(rb"\x16\x03[\x00-\x04]..([\x01\x02])", re.DOTALL)
_SSL2_HELLO = re.compile(rb"[\x80-\xff].\x01(\x00\x02|\x03[\x00-\x04])", re.DOTALL)


class KnownBy(IntEnum):
    """What told the client from the server, the surest first."""

    SYN = 0
    SYN_ACK = 1
    CLIENT_HELLO = 2
    SERVER_HELLO = 3
    HTTP_REQUEST = 4
    HTTP_RESPONSE = 5
    PORT = 6
    FIRST_PACKET = 7

    @property
    def text(self) -> str:
        """``syn``, ``client-hello`` …"""
        return self.name.lower().replace("_", "-")


def client_directions(packets: Packets, order: Int64, starts: Int64, buffer: Buffer) -> tuple[UInt8, UInt8]:
    """Of each connection (rows ``order[starts[c]:starts[c + 1]]``): the ``direction`` in which the client sends, and a ``KnownBy``."""
    count = len(starts) - 1
    client = np.full(count, _UNDECIDED, np.uint8)
    known_by = np.full(count, KnownBy.FIRST_PACKET, np.uint8)
    flags = packets.flags[order] & (SYN | ACK)
    for wanted, known, flip in ((SYN | ACK, KnownBy.SYN_ACK, 1), (SYN, KnownBy.SYN, 0)):
        places = np.flatnonzero(flags == wanted)[::-1]
        connection = np.searchsorted(starts, places, "right") - 1
        # places descend, so the first in the file is written last and stays
        client[connection] = packets.direction[order[places]] ^ flip
        known_by[connection] = known
    undecided = np.flatnonzero(client == _UNDECIDED)
    if undecided.size:
        client[undecided], known_by[undecided] = _by_port(packets, order, starts[undecided], buffer)
        loaded = np.add.reduceat(packets.captured_payload_bytes[order], starts[:-1])[undecided] > 0
        for one in undecided[loaded].tolist():
            if found := _by_content(packets, order[int(starts[one]) : int(starts[one + 1])], buffer):
                client[one], known_by[one] = found
    return client, known_by


def speaker(prefix: bytes) -> tuple[KnownBy, int] | None:
    """What the first octets of a segment give away: (evidence, 0 if the sender is the client or 1 if the server)."""
    if hello := _TLS_HELLO.match(prefix):
        return (KnownBy.CLIENT_HELLO, 0) if hello[1] == b"\x01" else (KnownBy.SERVER_HELLO, 1)
    if _SSL2_HELLO.match(prefix):
        return KnownBy.CLIENT_HELLO, 0
    if _HTTP_REQUEST.match(prefix):
        return KnownBy.HTTP_REQUEST, 0
    if _HTTP_RESPONSE.match(prefix):
        return KnownBy.HTTP_RESPONSE, 1
    return None


def _by_content(packets: Packets, rows: Int64, buffer: Buffer) -> tuple[int, KnownBy] | None:
    near = rows[:4096]
    loaded = near[packets.captured_payload_bytes[near] > 0][:_PEEKED_PACKETS]
    said = [b"", b""]
    for row in loaded.tolist():
        start, sender = int(packets.payload_offset[row]), int(packets.direction[row])
        prefix = bytes(buffer[start : start + min(_PEEKED_BYTES, int(packets.captured_payload_bytes[row]))])
        said[sender] += prefix if len(said[sender]) < _PEEKED_BYTES else b""
        if found := speaker(prefix) or speaker(said[sender]):
            known, server = found
            return sender ^ server, known
    return None


def _by_port(packets: Packets, order: Int64, first: Int64, buffer: Buffer) -> tuple[UInt8, UInt8]:
    """The lower port is taken for the server's; with equal ports (or none shown) the sender of the first packet is taken for the client."""
    rows = order[first]
    header = packets.payload_offset[rows] - packets.header_bytes[rows].astype(np.int64)
    ports = Octets(buffer).rows(header, np.dtype("V4")).view(">u2").reshape(-1, 2)
    told = shows_tcp_header(packets, rows) & (ports[:, 0] != ports[:, 1])
    client = packets.direction[rows] ^ (told & (ports[:, 0] < ports[:, 1])).astype(np.uint8)
    return client, np.where(told, KnownBy.PORT, KnownBy.FIRST_PACKET).astype(np.uint8)
