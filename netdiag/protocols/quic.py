"""QUIC as far as its handshake shows without keys: versions, names, times (RFC 9000, 9001). Content needs keys and is not read.

A connection is one pair of endpoints. Its client is who sent the first Initial that opens with the client's public key.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from netdiag.protocols.headers import text_of
from netdiag.protocols.quic_packet import (
    LongHeader,
    PacketType,
    crypto_frames,
    is_google,
    is_known,
    long_headers,
    open_initial,
    version_name,
)
from netdiag.protocols.tls.client_hello import ClientHello, client_hello
from netdiag.protocols.tls.names import group_name
from netdiag.protocols.tls.names import version_name as tls_version_name
from netdiag.protocols.tls.server_hello import ServerHello, server_hello
from netdiag.protocols.tls.suites import suite_of
from netdiag.records.connection import Connection, Side, Sides
from netdiag.records.endpoint import Endpoint
from netdiag.records.tls import EarlyData, TlsSession

_CLIENT_HELLO = 1
_SERVER_HELLO = 2
_MOST_CRYPTO_BYTES = 64 << 10
_MOST_PIECES = 128


@dataclass(frozen=True, slots=True)
class QuicDatagram:
    """One UDP datagram that may be QUIC."""

    data: bytes
    source: Endpoint
    destination: Endpoint
    at: int
    packet: int | None


def is_quic(data: bytes) -> bool:
    """Whether a datagram begins with a long header of a version that is known. Short headers, and version negotiation alone, say nothing."""
    if len(data) < 7:
        return False
    if not data[0] & 0x80:
        return _google_version(data) is not None
    version = int.from_bytes(data[1:5], "big")
    return is_known(version)


@dataclass(slots=True)
class _Crypto:
    """CRYPTO octets of one side, put in order as far as they go."""

    pieces: dict[int, bytes] = field(default_factory=dict)
    data: bytes = b""

    def add(self, offset: int, octets: bytes) -> None:
        if offset > _MOST_CRYPTO_BYTES or len(self.pieces) >= _MOST_PIECES:
            return
        if len(octets) > len(self.pieces.get(offset, b"")):
            self.pieces[offset] = octets
        for start in sorted(self.pieces):
            piece = self.pieces[start]
            if start <= len(self.data) < start + len(piece):
                self.data += piece[len(self.data) - start :]

    def message(self, kind: int) -> bytes | None:
        """Body of the first handshake message once it is whole."""
        data = self.data
        if len(data) < 4 or data[0] != kind:
            return None
        end = 4 + int.from_bytes(data[1:4], "big")
        return data[4:end] if end <= len(data) else None


@dataclass(slots=True)
class QuicConnection:
    """One connection as it is being observed."""

    client: Endpoint
    server: Endpoint
    version: int
    first_at: int
    first_packet: int | None
    client_known_by: str = "first-packet"
    last_at: int = 0
    last_packet: int | None = None
    packets: list[int] = field(default_factory=lambda: [0, 0])
    payload_bytes: list[int] = field(default_factory=lambda: [0, 0])
    first_payload: list[tuple[int, int | None] | None] = field(default_factory=lambda: [None, None])
    last_payload: list[tuple[int, int | None] | None] = field(default_factory=lambda: [None, None])
    retry_at: int | None = None
    versions_refused: tuple[int, ...] = ()
    """Versions that the server offered in a version negotiation."""
    client_hello: ClientHello | None = None
    client_hello_at: int | None = None
    client_hello_packet: int | None = None
    server_hello: ServerHello | None = None
    server_hello_at: int | None = None
    server_hello_packet: int | None = None
    zero_rtt_at: int | None = None
    client_handshake_at: int | None = None
    """Last Handshake packet of the client before its first 1-RTT packet."""
    one_rtt_at: list[int | None] = field(default_factory=lambda: [None, None])
    google_sni: str | None = None
    hello_retry_request: bool = False
    _ids: list[bytes] = field(default_factory=list)
    _crypto: tuple[_Crypto, _Crypto] = field(default_factory=lambda: (_Crypto(), _Crypto()))

    @property
    def finished_at(self) -> int | None:
        """When the client's handshake was over: its Finished travels in its last Handshake packets, 1-RTT packets come after it."""
        first_1rtt = self.one_rtt_at[0]
        if self.server_hello_at is None:
            return None
        if self.client_handshake_at is None:
            return first_1rtt
        return self.client_handshake_at if first_1rtt is not None else None

    def add(self, datagram: QuicDatagram, side: int) -> None:
        """One datagram from the client (0) or the server (1)."""
        self.last_at, self.last_packet = datagram.at, datagram.packet
        self.packets[side] += 1
        self.payload_bytes[side] += len(datagram.data)
        mark = datagram.at, datagram.packet
        self.first_payload[side] = self.first_payload[side] or mark
        self.last_payload[side] = mark
        end = 0
        for header in long_headers(datagram.data):
            end = header.end
            self._long(datagram, header, side)
        if end < len(datagram.data) and datagram.data[end] & 0xC0 == 0x40:
            self.one_rtt_at[side] = self.one_rtt_at[side] or datagram.at

    def _long(self, datagram: QuicDatagram, header: LongHeader, side: int) -> None:
        kind = header.type
        if kind == PacketType.VERSION_NEGOTIATION:
            octets = datagram.data[header.number_at : header.number_at + 256]
            self.versions_refused = tuple(
                int.from_bytes(octets[i : i + 4], "big") for i in range(0, len(octets) - 3, 4)
            )
            if side == 1 and self.server_hello is None:
                self._begin_again()
            return
        if header.version != self.version and is_known(header.version):
            # Compatible negotiation (RFC 9368), or a new attempt after a refusal.
            self.version = header.version
        if kind == PacketType.RETRY:
            self.retry_at = datagram.at
        elif kind == PacketType.ZERO_RTT:
            self.zero_rtt_at = self.zero_rtt_at or datagram.at
        elif kind == PacketType.HANDSHAKE:
            if side == 0 and self.one_rtt_at[0] is None:
                self.client_handshake_at = datagram.at
        else:
            self._initial(datagram, header, side)

    def _begin_again(self) -> None:
        """The client's next attempt is a connection of its own: another version, other connection ids, another hello (RFC 9000 section 6.2)."""
        self.client_hello = None
        self._ids.clear()
        self._crypto = _Crypto(), _Crypto()

    def _initial(self, datagram: QuicDatagram, header: LongHeader, side: int) -> None:
        if self.client_hello is not None and side == 0 and self.retry_at is None and not self.hello_retry_request:
            return
        if self.server_hello is not None and side == 1:
            return
        if side == 0 and header.destination_id not in self._ids and len(self._ids) < 8:
            self._ids.append(header.destination_id)
        frames = None
        for connection_id in reversed(self._ids):
            frames = open_initial(datagram.data, header, connection_id, from_client=side == 0)
            if frames is not None:
                break
        if frames is None:
            return
        if is_google(header.version):
            self.google_sni = self.google_sni or _google_sni(frames)
        for offset, octets in crypto_frames(frames):
            self._crypto[side].add(offset, octets)
        self._read_hello(datagram, side)

    def _read_hello(self, datagram: QuicDatagram, side: int) -> None:
        if side == 0 and self.client_hello is None:
            body = self._crypto[0].message(_CLIENT_HELLO)
            if body is not None:
                self.client_hello = client_hello(body)
                self.client_hello_at, self.client_hello_packet = datagram.at, datagram.packet
        elif side == 1 and self.server_hello is None:
            body = self._crypto[1].message(_SERVER_HELLO)
            hello = server_hello(body) if body is not None else None
            if hello is not None and hello.retry:
                self.hello_retry_request = True
                self._crypto = self._crypto[0], _Rest(self._crypto[1])
            elif hello is not None:
                self.server_hello = hello
                self.server_hello_at, self.server_hello_packet = datagram.at, datagram.packet

    def session(self) -> TlsSession:
        """What the hellos say; ALPN's choice and certificates are encrypted."""
        hello, answer = self.client_hello, self.server_hello
        first = self.first_payload[0]
        return TlsSession(
            version=tls_version_name(answer.version) if answer else None,
            cipher_suite=suite_of(answer.suite).name if answer and answer.suite is not None else None,
            group=group_name(answer.group) if answer and answer.group is not None else None,
            sni=hello.server_name if hello else self.google_sni,
            alpn_offered=hello.alpn if hello else (),
            versions_offered=tuple(tls_version_name(v) for v in hello.versions) if hello else (),
            ech="offered" if hello and hello.offers_ech else None,
            client_hello_at=first[0] if first and hello else None,
            client_hello_packet=self.client_hello_packet,
            server_hello_at=self.server_hello_at,
            server_hello_packet=self.server_hello_packet,
            finished_at=self.finished_at,
            finished_method="grammar" if self.finished_at is not None else None,
            hello_retry_request=self.hello_retry_request,
            resumed=answer.selected_psk if answer else None,
            early_data=EarlyData.OFFERED if hello and hello.offers_early_data else None,
            client_random=hello.random.hex() if hello else None,
        )

    def record(self, id_: int) -> Connection:
        """The connection as a record of the analysis."""
        return Connection(
            id=id_,
            transport="quic",
            client=self.client,
            server=self.server,
            client_known_by=self.client_known_by,
            first_at=self.first_at,
            last_at=self.last_at,
            first_packet=self.first_packet,
            last_packet=self.last_packet,
            sides=Sides(client=self._side(0), server=self._side(1)),
            tls=self.session(),
            application=f"quic {version_name(self.version)}",
        )

    def _side(self, side: int) -> Side:
        first, last = self.first_payload[side], self.last_payload[side]
        return Side(
            packets=self.packets[side],
            payload_bytes=self.payload_bytes[side],
            first_payload_at=first[0] if first else None,
            first_payload_packet=first[1] if first else None,
            last_payload_at=last[0] if last else None,
            last_payload_packet=last[1] if last else None,
        )


class _Rest(_Crypto):
    """The server's CRYPTO stream after a HelloRetryRequest: the ServerHello proper follows in the same stream."""

    __slots__ = ()

    def __init__(self, before: _Crypto) -> None:
        super().__init__(before.pieces, before.data)

    def message(self, kind: int) -> bytes | None:
        data = self.data
        after = 4 + int.from_bytes(data[1:4], "big")
        rest = data[after:]
        if len(rest) < 4 or rest[0] != kind:
            return None
        end = 4 + int.from_bytes(rest[1:4], "big")
        return rest[4:end] if end <= len(rest) else None


def observe(datagrams: Iterable[QuicDatagram]) -> list[QuicConnection]:
    """All QUIC connections of these datagrams, in the order of their first datagram. Datagrams that are no QUIC are left out."""
    found: list[QuicConnection] = []
    by_pair: dict[tuple[Endpoint, Endpoint], QuicConnection] = {}
    for datagram in datagrams:
        pair = datagram.source, datagram.destination
        connection = by_pair.get(pair)
        if connection is None:
            if not is_quic(datagram.data):
                continue
            connection = _begin(datagram)
            found.append(connection)
            by_pair[pair] = by_pair[pair[1], pair[0]] = connection
        connection.add(datagram, 0 if datagram.source == connection.client else 1)
        if connection.google_sni is None and is_google(connection.version):
            connection.google_sni = _google_sni(datagram.data)
    return found


def _begin(datagram: QuicDatagram) -> QuicConnection:
    client, server, known_by = _roles(datagram)
    data = datagram.data
    version = int.from_bytes(data[1:5], "big") if data[0] & 0x80 else _google_version(data) or 0
    return QuicConnection(client, server, version, datagram.at, datagram.packet, known_by)


def _roles(datagram: QuicDatagram) -> tuple[Endpoint, Endpoint, str]:
    """Who is the client: the sender of an Initial that opens with the client's keys, else the higher port."""
    for header in long_headers(datagram.data):
        if header.type == PacketType.INITIAL:
            if open_initial(datagram.data, header, header.destination_id, from_client=True) is not None:
                return datagram.source, datagram.destination, "client-hello"
            break
    if datagram.source.port < datagram.destination.port:
        return datagram.destination, datagram.source, "port"
    return (
        datagram.source,
        datagram.destination,
        "port" if datagram.source.port != datagram.destination.port else "first-packet",
    )


def _google_version(data: bytes) -> int | None:
    """Of Google QUIC before Q044: flags with the version bit, eight octets of connection id, the version."""
    if len(data) < 13 or data[0] & 0x89 != 0x09:
        return None
    version = int.from_bytes(data[9:13], "big")
    return version if is_google(version) else None


def _google_sni(octets: bytes) -> str | None:
    """The SNI tag of a CHLO message, which Google QUIC sent in clear (its crypto specification, "Client handshake")."""
    start = octets.find(b"CHLO")
    if start < 0 or start + 8 > len(octets):
        return None
    count = int.from_bytes(octets[start + 4 : start + 6], "little")
    values = start + 8 + 8 * count
    begin = 0
    for i in range(min(count, 64)):
        entry = octets[start + 8 + 8 * i : start + 16 + 8 * i]
        end = int.from_bytes(entry[4:8], "little")
        if entry[:4] == b"SNI\0" and 0 < end - begin <= 255 and values + end <= len(octets):
            return text_of(octets[values + begin : values + end])
        begin = end
    return None
