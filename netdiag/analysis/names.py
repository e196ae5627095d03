"""Name resolutions of a capture: DNS messages in datagrams and in TCP streams, paired."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from netdiag.analysis.pairing import Lookup
from netdiag.protocols.dns import transport as dns_transport
from netdiag.records.connection import Connection
from netdiag.records.dns import NameResolution
from netdiag.records.endpoint import Endpoint
from netdiag.wire.address import endpoint_of
from netdiag.wire.octets import BIG16, Octets
from netdiag.wire.tables import Bool, Buffer, Datagrams

if TYPE_CHECKING:
    from netdiag.protocols.dns.timed import TimedMessage


_LEAST_BYTES = 17
"""Of a message with a question: header, the root's name, type and class."""
_OTHER_USES = (137, 5353, 5355)
"""NetBIOS names, mDNS and LLMNR: the same header, but no resolver."""
_INTERNET = 1
"""The class."""
_OPCODE_AND_ZERO, _ANSWERS_ONLY = 0x7840, 0x048F
_MOST_RECORDS = 64


def in_datagrams(datagrams: Datagrams, buffer: Buffer, reassembled: Mapping[int, bytes]) -> list[TimedMessage]:
    """Messages over UDP, in the order of the capture; ``reassembled`` has those that came in IP fragments, by frame number.

    What goes to or comes from the port of resolvers is one; at other ports what could be nothing else.
    """
    to_resolver = (datagrams.destination_port == dns_transport.PORT) | (datagrams.source_port == dns_transport.PORT)
    elsewhere = np.flatnonzero(~to_resolver)
    elsewhere = elsewhere[_look_like_dns(datagrams.take(elsewhere), Octets(buffer))]
    to_resolver[elsewhere] = True
    strict = set(elsewhere.tolist())
    return [
        m
        for row in np.flatnonzero(to_resolver).tolist()
        if (m := _in_datagram(datagrams, buffer, row, reassembled)) is not None
        and (row not in strict or _is_beyond_doubt(m))
    ]


def _look_like_dns(datagrams: Datagrams, octets: Octets) -> Bool:
    """By the header: one question, and as many records as a query or an answer may have."""
    found: Bool = datagrams.captured_payload_bytes >= _LEAST_BYTES
    for port in _OTHER_USES:
        found &= (datagrams.source_port != port) & (datagrams.destination_port != port)
    rows = np.flatnonzero(found)
    rows = rows[octets.column(datagrams.payload_offset[rows] + 4, BIG16) == 1]
    at = datagrams.payload_offset[rows]
    flags, answers, authorities, additionals = (octets.column(at + place, BIG16) for place in (2, 6, 8, 10))
    asks = ((flags & 0x8000) == 0) & ((flags & _ANSWERS_ONLY) == 0) & (answers == 0) & (authorities == 0)
    good = ((flags & _OPCODE_AND_ZERO) == 0) & (asks | ((flags & 0x8000) != 0))
    good &= (answers <= _MOST_RECORDS) & (authorities <= _MOST_RECORDS) & (additionals <= _MOST_RECORDS)
    found[:] = False
    found[rows[good]] = True
    return found


def _is_beyond_doubt(timed: TimedMessage) -> bool:
    message = timed.message
    return (
        message.readable
        and not message.damaged
        and message.class_ == _INTERNET
        and not message.type_name.startswith("TYPE")
    )


def _in_datagram(
    datagrams: Datagrams, buffer: Buffer, row: int, reassembled: Mapping[int, bytes]
) -> TimedMessage | None:
    # Here, not above: most captures of one client have no DNS in them.
    from netdiag.protocols.dns.message import decode_message
    from netdiag.protocols.dns.timed import TimedMessage

    start, number = int(datagrams.payload_offset[row]), int(datagrams.number[row])
    data = reassembled.get(number) or bytes(buffer[start : start + int(datagrams.captured_payload_bytes[row])])
    message = decode_message(data)
    if message is None:
        return None
    network = int(datagrams.network_offset[row])
    return TimedMessage(
        message=message,
        source=Endpoint(endpoint_of(buffer, network, 0), int(datagrams.source_port[row])),
        destination=Endpoint(endpoint_of(buffer, network, 1), int(datagrams.destination_port[row])),
        at=int(datagrams.captured_at[row]),
        packet=number,
    )


def in_stream(messages: Iterable[TimedMessage], connection: Connection) -> list[TimedMessage]:
    """Messages over TCP with the endpoints of their connection."""
    return [m.between(connection.client, connection.server) for m in messages]


def resolutions(messages: Iterable[TimedMessage]) -> list[NameResolution]:
    """Queries and answers paired."""
    found = sorted(messages, key=lambda m: m.packet or 0)
    if not found:
        return []
    from netdiag.protocols.dns.pairing import pair

    return pair(found)


def with_connections(found: list[NameResolution], lookups: Mapping[int, Lookup]) -> list[NameResolution]:
    """Each resolution names the first connection that it led to."""
    led_to: dict[int, int] = {}
    reached_first = sorted(lookups.items(), key=lambda item: (item[1].superseded, item[0]))
    for connection_id, lookup in reached_first:
        for place in lookup.resolutions:
            led_to.setdefault(place, connection_id)
    return [dataclasses.replace(row, connection_id=led_to[i]) if i in led_to else row for i, row in enumerate(found)]
