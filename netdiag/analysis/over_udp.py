"""QUIC connections beside the TCP ones. Without keys their requests cannot be told; an attempt that nothing answered is an exchange that failed,
for a client that then falls back to TCP has paid for it."""

from __future__ import annotations

from collections.abc import Mapping

from netdiag.analysis.drafts import Draft
from netdiag.analysis.gather import Gathered
from netdiag.analysis.marks import Mark, Marks, Milestone
from netdiag.analysis.pairing import Dial, Lookup
from netdiag.analysis.quic_flows import quic_connections
from netdiag.records.connection import Connection
from netdiag.records.exchange import Outcome

M = Milestone
PATIENCE_NS = 1_000_000_000
"""RFC 9002 section 6.2.2: the first probe timeout of a new connection is about that long."""


class OverUdp:
    """The QUIC connections of a capture, numbered after those over TCP."""

    def __init__(self, gathered: Gathered, *, first_id: int) -> None:
        found = quic_connections(gathered.datagrams, gathered.buffer)
        self.connections: list[Connection] = [one.record(first_id + i) for i, one in enumerate(found)]

    def dials(self) -> list[Dial]:
        """As attempts to reach an address."""
        return [_dial(connection) for connection in self.connections]

    def drafts(self, lookups: Mapping[int, Lookup], capture_ends_at: int) -> list[Draft]:
        """The attempts that nothing answered."""
        silent = [
            c for c in self.connections if not c.sides.server.packets and c.tls and c.tls.client_hello_at is not None
        ]
        return [_unanswered(c, lookups.get(c.id), capture_ends_at) for c in silent]


def _dial(connection: Connection) -> Dial:
    name = None if connection.tls is None else connection.tls.sni
    return Dial(
        connection_id=connection.id,
        client=connection.client.address,
        server=connection.server.address,
        syn_at=connection.first_at,
        names=frozenset({name.lower()}) if name else frozenset(),
        failed_at=None if connection.sides.server.packets else connection.last_at + PATIENCE_NS,
    )


def _unanswered(connection: Connection, lookup: Lookup | None, capture_ends_at: int) -> Draft:
    marks: Marks = {M.CLIENT_HELLO: Mark(connection.first_at, connection.first_packet)}
    if lookup is not None:
        marks[M.DNS_QUERY], marks[M.DNS_ANSWER] = lookup.query, lookup.answer
    waited = capture_ends_at - connection.first_at >= PATIENCE_NS
    count = connection.sides.client.packets
    return Draft(
        connection=connection,
        marks=marks,
        ended=Mark(connection.last_at, connection.last_packet),
        outcome=Outcome.TIMEOUT_CONNECT if waited else Outcome.INCOMPLETE,
        outcome_detail=f"{count} QUIC datagram{'s' if count > 1 else ''} without an answer",
        server_name=None if connection.tls is None else connection.tls.sni,
    )
