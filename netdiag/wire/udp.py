"""UDP (RFC 768): datagrams to columns, tunnels to what is inside."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netdiag.wire.codes import UDP, Inner
from netdiag.wire.cursor import Cursor, Layer, u16
from netdiag.wire.octets import Octets
from netdiag.wire.tunnels import udp_tunnel

DNS_PORT, MDNS_PORT = 53, 5353


def peel(octets: Octets, cursor: Cursor) -> Cursor:
    """Into tunnels; datagrams that are none stay at their UDP header."""
    source, destination = u16(octets, cursor, 0), u16(octets, cursor, 2)
    inside = udp_tunnel(octets, cursor.at + 8, source, destination)
    inside = np.where(cursor.at + 16 <= cursor.end, inside, int(Inner.DATAGRAM))
    return cursor.step(inside, np.where(inside == Inner.DATAGRAM, 0, 8))


def columns(octets: Octets, cursor: Cursor) -> dict[str, NDArray[Any]]:
    """Columns of ``Datagrams`` by name, without those that the capture file says. Rows are at their UDP header.

    The payload ends where the UDP length says, but not behind the IP packet; length 0 is a jumbogram (RFC 2675 section 4).
    """
    length = u16(octets, cursor, 4)
    payload = cursor.at + 8
    whole = np.maximum(cursor.wire_end - payload, 0)
    payload_bytes = np.where(length == 0, whole, np.clip(length - 8, 0, whole))
    return {
        "network_offset": cursor.network,
        "payload_offset": payload,
        "payload_bytes": payload_bytes,
        "captured_payload_bytes": np.clip(cursor.end - payload, 0, payload_bytes),
        "source_port": u16(octets, cursor, 0),
        "destination_port": u16(octets, cursor, 2),
    }


UDP_LAYERS: dict[int, Layer] = {UDP: Layer("udp", 8, peel)}
