"""ICMP (RFC 792) and ICMPv6 (RFC 4443) errors: what the network said about a TCP or UDP packet."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from netdiag.wire import layers
from netdiag.wire.address import endpoint_keys
from netdiag.wire.codes import TCP, UDP, Inner
from netdiag.wire.cursor import Cursor, u8, u16, u32
from netdiag.wire.octets import BIG16, BIG32, Octets
from netdiag.wire.tables import Bool, Int64

ERRORS_V4 = (3, 4, 5, 11, 12)
"""Destination unreachable, source quench, redirect, time exceeded, parameter problem."""
ERRORS_V6 = (1, 2, 3, 4)
"""Destination unreachable, packet too big, time exceeded, parameter problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IcmpError:
    """One ICMP error message about a TCP or UDP packet."""

    packet: int
    """Frame number of the message."""
    captured_at: int
    version: int
    """4 or 6."""
    type: int
    code: int
    mtu: int | None
    """Of fragmentation needed (4, type 3 code 4) and packet too big (6, type 2); None else, or where a router left it 0."""
    protocol: int
    """Of the packet it is about: 6 (TCP) or 17 (UDP)."""
    source_port: int
    destination_port: int
    """Of the packet it is about."""
    low: int
    high: int
    """Its endpoints as in ``Packets``."""
    direction: int
    """0: the packet it is about had been sent by the ``low`` endpoint, 1: by the ``high`` one."""
    seq: int | None
    """Its TCP sequence number; None for UDP."""
    network_offset: int
    """IP header of the message: who sent it."""
    inner_network_offset: int
    """IP header of the packet it is about."""


def errors(
    octets: Octets, cursor: Cursor, number: Int64, captured_at: Int64, *, version: int
) -> tuple[list[IcmpError], Bool]:
    """The errors among ICMP rows, in row order; and which rows they came from."""
    kinds = ERRORS_V4 if version == 4 else ERRORS_V6
    candidates = np.flatnonzero((cursor.at + 8 <= cursor.end) & np.isin(u8(octets, cursor, 0), kinds))
    is_error = np.zeros(len(cursor), np.bool_)
    if not candidates.size:
        return [], is_error
    messages = cursor.take(candidates)
    # Number the inner packets by the message they are in, to find their way back.
    inner = replace(messages.step(int(Inner.RAW_IP), 8), row=candidates)
    ended = layers.peel(octets, inner).ended
    found: list[IcmpError] = []
    for code in (TCP, UDP, int(Inner.DATAGRAM)):
        if code in ended:
            rows = ended[code].take(ended[code].at + 8 <= ended[code].end)
            is_error[rows.row] = True
            found += _about(octets, rows, cursor, number, captured_at, version)
    return sorted(found, key=lambda error: error.packet), is_error


def _about(
    octets: Octets, inner: Cursor, messages: Cursor, number: Int64, captured_at: Int64, version: int
) -> list[IcmpError]:
    message = messages.take(inner.row)
    source_port, destination_port = octets.column(inner.at, BIG16), octets.column(inner.at + 2, BIG16)
    source, destination = endpoint_keys(octets, inner.network, source_port, destination_port)
    kind, code = u8(octets, message, 0), u8(octets, message, 1)
    mtu = u16(octets, message, 6) if version == 4 else u32(octets, message, 4)
    has_mtu = (kind == 3) & (code == 4) if version == 4 else kind == 2
    is_tcp = inner.code == TCP
    seq = octets.column(inner.at + 4, BIG32)
    packet, at = number[message.row], captured_at[message.row]
    return [
        IcmpError(
            packet=int(packet[i]),
            captured_at=int(at[i]),
            version=version,
            type=int(kind[i]),
            code=int(code[i]),
            mtu=(int(mtu[i]) or None) if has_mtu[i] else None,
            protocol=6 if is_tcp[i] else 17,
            source_port=int(source_port[i]),
            destination_port=int(destination_port[i]),
            low=int(min(source[i], destination[i])),
            high=int(max(source[i], destination[i])),
            direction=int(source[i] > destination[i]),
            seq=int(seq[i]) if is_tcp[i] else None,
            network_offset=int(message.network[i]),
            inner_network_offset=int(inner.network[i]),
        )
        for i in range(len(inner))
    ]
