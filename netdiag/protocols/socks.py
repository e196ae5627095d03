"""SOCKS 4, 4a and 5 as an observer sees them (RFC 1928, 1929): who was asked for, when the proxy agreed, and what comes after."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from netdiag.protocols.conversation import Tunnel
from netdiag.protocols.headers import printable
from netdiag.protocols.stream_reader import StreamReader
from netdiag.protocols.turn import Turn, TurnEnd
from netdiag.wire.chunk import Chunk, Moment

_NO_AUTHENTICATION = 0
_USER_PASSWORD = 2
_REFUSED_METHODS = 0xFF
_SUCCEEDED = 0
_GRANTED = 90
_MAX_TEXT_BYTES = 512


def decode(client: Iterable[Chunk], server: Iterable[Chunk]) -> Tunnel | None:
    """What the proxy opened; None when it refused, or when the octets are no SOCKS handshake that was captured whole.

    The tunnel's turn runs from the first octet of the greeting (``request_first``) to the proxy's consent (``response_last``);
    ``request_last`` is the last octet of the request proper. User names and passwords are not kept.
    """
    reader = _Handshake(client, server)
    try:
        version = reader.client.peek()
        turn = _socks5(reader) if version == 5 else _socks4(reader) if version == 4 else None
    except _Broken:
        return None
    if turn is None:
        return None
    turn.end = TurnEnd.TUNNEL
    return Tunnel(
        kind=turn.protocol,
        turn=turn,
        client=reader.client.reader.rest(),
        server=reader.server.reader.rest(),
        target=turn.authority,
    )


class _Broken(Exception):
    """The handshake ends early; stays inside this module."""


class _Octets:
    """Exact reads from one direction."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self.reader = StreamReader(chunks)
        self.first: Moment | None = None

    def peek(self) -> int:
        if not self.reader.more():
            raise _Broken
        return self.reader.rest_of_chunk()[0]

    def take(self, count: int) -> bytes:
        out = b""
        while len(out) < count:
            if not self.reader.more():
                raise _Broken
            if self.first is None:
                self.first = self.reader.first_moment()
            out += self.reader.take(count - len(out))
        return out

    def take_text(self) -> bytes:
        """Octets up to a zero, without it."""
        out = bytearray()
        while (octet := self.take(1)) != b"\0":
            out += octet
            if len(out) > _MAX_TEXT_BYTES:
                raise _Broken
        return bytes(out)


class _Handshake:
    """Both directions while the proxy is being asked."""

    __slots__ = ("client", "server")

    def __init__(self, client: Iterable[Chunk], server: Iterable[Chunk]) -> None:
        self.client = _Octets(client)
        self.server = _Octets(server)


def _socks5(reader: _Handshake) -> Turn | None:
    """RFC 1928 sections 3 to 6."""
    client, server = reader.client, reader.server
    count = client.take(2)[1]
    client.take(count)
    version, method = server.take(2)
    if version != 5 or method == _REFUSED_METHODS:
        return None
    if method == _USER_PASSWORD and not _authenticate(reader):
        return None
    if method not in (_NO_AUTHENTICATION, _USER_PASSWORD):
        return None  # GSSAPI and private methods wrap what follows
    _, command, _, kind = client.take(4)
    target = _address(client, kind)
    turn = _turn("socks5", client, target, command)
    _, reply, _, kind = server.take(4)
    _address(server, kind)
    _answered(turn, server)
    return turn if reply == _SUCCEEDED else None


def _authenticate(reader: _Handshake) -> bool:
    """RFC 1929: the octets are passed over, never kept."""
    reader.client.take(reader.client.take(2)[1])
    reader.client.take(reader.client.take(1)[0])
    return reader.server.take(2)[1] == 0


def _address(octets: _Octets, kind: int) -> str:
    """``host:port`` of RFC 1928 section 5."""
    if kind == 1:
        host = socket.inet_ntop(socket.AF_INET, octets.take(4))
    elif kind == 4:
        host = f"[{socket.inet_ntop(socket.AF_INET6, octets.take(16))}]"
    elif kind == 3:
        host = printable(octets.take(octets.take(1)[0]), 255)
    else:
        raise _Broken
    return f"{host}:{int.from_bytes(octets.take(2), 'big')}"


def _socks4(reader: _Handshake) -> Turn | None:
    """SOCKS 4, and 4a where the address is 0.0.0.x: then the host's name follows the user. Some clients leave x at 0, and send a name."""
    client, server = reader.client, reader.server
    _, command = client.take(2)
    port = int.from_bytes(client.take(2), "big")
    address = client.take(4)
    client.take_text()
    host = socket.inet_ntop(socket.AF_INET, address)
    if address[:3] == b"\0\0\0" and (address[3] or client.reader.rest_of_chunk()):
        host = printable(client.take_text(), 255)
    turn = _turn("socks4", client, f"{host}:{port}", command)
    reply = server.take(8)
    _answered(turn, server)
    return turn if reply[0] == 0 and reply[1] == _GRANTED else None


def _turn(protocol: str, client: _Octets, target: str, command: int) -> Turn:
    return Turn(
        ordinal=0,
        protocol=protocol,
        method={1: "CONNECT", 2: "BIND", 3: "UDP ASSOCIATE"}.get(command, f"command {command}"),
        authority=target,
        request_first=client.first,
        request_head_last=client.reader.last_moment(),
        request_last=client.reader.last_moment(),
    )


def _answered(turn: Turn, server: _Octets) -> None:
    turn.response_first = server.first
    turn.response_head_last = turn.response_last = server.reader.last_moment()
