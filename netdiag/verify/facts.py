"""What two witnesses of one capture can be compared on, whoever says it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from netdiag.protocols.http1_head import CUT_MARK
from netdiag.records.analysis import Analysis
from netdiag.records.connection import Connection
from netdiag.records.exchange import CONNECT

Pair = tuple[str, str]
"""Both endpoints of a connection as ``address:port``, sorted, so that it does not matter who is the client."""


@dataclass(slots=True, kw_only=True)
class ConnectionFacts:
    """One TCP connection. None: the witness does not say."""

    pair: Pair
    first_packet: int | None = None
    syn_packet: int | None = None
    syn_ack_packet: int | None = None
    ack_packet: int | None = None
    syn_at: int | None = None
    sni: str | None = None
    alpn_offered: tuple[str, ...] | None = None
    tls_version: str | None = None
    cipher_suite: int | None = None
    inside: str | None = None
    """The protocol whose packets carry the TLS, where it is not TCP itself."""
    client_hello_packet: int | None = None
    server_hello_packet: int | None = None
    client_hello_at: int | None = None
    server_hello_at: int | None = None
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(method, target) of every request that could be read."""
    statuses: Counter[int] = field(default_factory=Counter)
    """Final statuses of the responses."""
    closed: bool = False
    """It ended with FIN or RST."""
    jumbo: bool = False
    """It has packets above 64 KiB, whose IP header gives no length."""
    tunnels: bool = False
    """Streams of HTTP/2 on it are tunnels (CONNECT)."""


@dataclass(slots=True, kw_only=True)
class CaptureFacts:
    """One capture."""

    packets: int
    connections: list[ConnectionFacts] = field(default_factory=list)
    names: Counter[tuple[str, int]] = field(default_factory=Counter)
    """(name, frame) of every DNS answer over UDP, names in lower case without the final dot."""
    malformed: set[int] = field(default_factory=set)
    """Frames that the witness itself calls malformed."""
    repeated: set[int] = field(default_factory=set)
    """Frames with an answer that the witness itself calls a repetition of one before."""
    damaged: bool = False
    """The file itself is cut or damaged."""


def facts_of(analysis: Analysis) -> CaptureFacts:
    """netdiag's side of the comparison."""
    damaged = analysis.source.cut_at_byte is not None or any(a.protocol == "file" for a in analysis.anomalies)
    facts = CaptureFacts(packets=analysis.source.packets, damaged=damaged)
    places: dict[int, ConnectionFacts] = {}
    for connection in analysis.connections:
        only_quoted = not connection.sides.client.packets + connection.sides.server.packets
        if connection.transport == "tcp" and not only_quoted:
            places[connection.id] = _of_connection(connection)
            facts.connections.append(places[connection.id])
    for exchange in analysis.exchanges:
        place = places.get(exchange.connection_id) if exchange.connection_id is not None else None
        if place is None:
            continue
        place.tunnels |= exchange.method == CONNECT and exchange.protocol == "h2"
        if exchange.method is not None:
            target = exchange.path or exchange.authority or ""
            place.requests[exchange.method, target.removesuffix(CUT_MARK)] += 1
        if exchange.status is not None:
            place.statuses[exchange.status] += 1
    for resolution in analysis.resolutions:
        if resolution.response_packet is not None and resolution.transport == "udp":
            asked = resolution.answered_question or resolution.name
            facts.names[asked.split(" ")[0].rstrip(".").lower(), resolution.response_packet] += 1
    return facts


def _of_connection(connection: Connection) -> ConnectionFacts:
    pair = sorted((str(connection.client), str(connection.server)))
    facts = ConnectionFacts(
        pair=(pair[0], pair[1]),
        first_packet=connection.first_packet,
        syn_packet=connection.syn_packet,
        syn_ack_packet=connection.syn_ack_packet,
        ack_packet=connection.ack_packet,
        closed=connection.closed_at is not None,
        syn_at=connection.syn_at,
        jumbo=any(s.payload_bytes > 65_535 * s.packets for s in (connection.sides.client, connection.sides.server)),
    )
    tls = connection.tls
    if tls is not None:
        facts.client_hello_packet, facts.server_hello_packet = tls.client_hello_packet, tls.server_hello_packet
        facts.client_hello_at, facts.server_hello_at = tls.client_hello_at, tls.server_hello_at
        facts.sni, facts.tls_version = tls.sni, tls.version
        facts.alpn_offered = tls.alpn_offered if tls.client_hello_packet is not None else None
    return facts
