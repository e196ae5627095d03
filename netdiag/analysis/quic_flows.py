"""QUIC connections of a capture: UDP flows in which some datagram begins with a long header of a known version."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from netdiag.protocols.dns.transport import PORT as DNS_PORT
from netdiag.records.endpoint import Endpoint
from netdiag.wire.address import endpoint_keys, endpoint_of
from netdiag.wire.octets import BIG32, Octets
from netdiag.wire.tables import Bool, Buffer, Datagrams, Int64

if TYPE_CHECKING:
    from netdiag.protocols.quic import QuicConnection, QuicDatagram

_LONG_HEADER = 0x80
_GOOGLE_FLAGS, _GOOGLE_MASK, _GOOGLE_VERSION_AT = 0x09, 0x89, 9
"""Before version Q044: the version bit and an 8-octet connection id."""
_NEEDED_BYTES = 13
MOST_DATAGRAMS = 4_000
"""Looked at one by one per flow; a handshake takes some tens, and of the rest only sizes and times would be read."""


def quic_connections(datagrams: Datagrams, buffer: Buffer) -> list[QuicConnection]:
    """All of them, in the order of their first datagram."""
    if not len(datagrams):
        return []
    octets = Octets(buffer)
    chosen = np.flatnonzero(_may_be_quic(datagrams, octets))
    if not len(chosen):
        return []
    rows = _of_the_same_flows(datagrams, octets, chosen)
    found = _decoder().observe(_datagram(datagrams, buffer, row) for row in rows.tolist())
    return [connection for connection in found if _convincing(connection)]


def _decoder() -> ModuleType:
    """Loaded with the first datagram that may be QUIC."""
    from netdiag.protocols import quic

    return quic


_PORT = 443
_RESERVED = 0x0A0A0A0A


def _convincing(connection: QuicConnection) -> bool:
    """Four octets alone may be chance: an Initial that its public keys open, or a real version on QUIC's own port."""
    if connection.client_hello is not None or connection.client_known_by == "client-hello":
        return True
    on_its_port = _PORT in (connection.client.port, connection.server.port)
    return on_its_port and connection.version & 0x0F0F0F0F != _RESERVED


def _may_be_quic(datagrams: Datagrams, octets: Octets) -> Bool:
    """By first octet and version, over all datagrams at once; the few distinct versions are then looked at one by one."""
    at = datagrams.payload_offset
    first = octets.column(at, np.dtype("u1"))
    enough = datagrams.captured_payload_bytes >= _NEEDED_BYTES
    no_dns = (datagrams.source_port != DNS_PORT) & (datagrams.destination_port != DNS_PORT)
    candidates = enough & no_dns
    long_header = candidates & (first & _LONG_HEADER > 0)
    google = candidates & (first & _GOOGLE_MASK == _GOOGLE_FLAGS)
    known = np.zeros(len(datagrams), bool)
    for mask, place, head in ((long_header, 1, b"\xc0"), (google, _GOOGLE_VERSION_AT, b"\x09" + bytes(8))):
        rows = np.flatnonzero(mask)
        if not len(rows):
            continue
        versions = octets.column(at[rows] + place, BIG32)
        wanted = [
            v for v in np.unique(versions).tolist() if _decoder().is_quic(head + v.to_bytes(4, "big") + bytes(16))
        ]
        known[rows[np.isin(versions, wanted)]] = True
    return known


def _of_the_same_flows(datagrams: Datagrams, octets: Octets, chosen: Int64) -> Int64:
    """All datagrams between the endpoints of the chosen ones, of each flow the first ``MOST_DATAGRAMS``."""
    ports = datagrams.source_port.astype(np.int64), datagrams.destination_port.astype(np.int64)
    source, destination = endpoint_keys(octets, datagrams.network_offset, *ports)
    low, high = np.minimum(source, destination), np.maximum(source, destination)
    pairs = np.rec.fromarrays([low, high])
    _, flow = np.unique(pairs, return_inverse=True)
    rows = np.flatnonzero(np.isin(flow, flow[chosen]))
    order = np.argsort(flow[rows], kind="stable")
    counted = flow[rows][order]
    starts = np.flatnonzero(np.r_[True, counted[1:] != counted[:-1]])
    rank = np.arange(len(rows)) - np.repeat(starts, np.diff(np.r_[starts, len(rows)]))
    kept: Int64 = np.sort(rows[order[rank < MOST_DATAGRAMS]])
    return kept


def _datagram(datagrams: Datagrams, buffer: Buffer, row: int) -> QuicDatagram:
    start, network = int(datagrams.payload_offset[row]), int(datagrams.network_offset[row])
    found: QuicDatagram = _decoder().QuicDatagram(
        data=bytes(buffer[start : start + int(datagrams.captured_payload_bytes[row])]),
        source=Endpoint(endpoint_of(buffer, network, 0), int(datagrams.source_port[row])),
        destination=Endpoint(endpoint_of(buffer, network, 1), int(datagrams.destination_port[row])),
        at=int(datagrams.captured_at[row]),
        packet=int(datagrams.number[row]),
    )
    return found
