"""TCP headers (RFC 9293 section 3.1) to columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netdiag.wire.address import endpoint_keys, identification_and_hops
from netdiag.wire.cursor import Cursor, u8
from netdiag.wire.octets import Octets
from netdiag.wire.tables import Bool

HEADER = np.dtype(
    {
        "names": ["source", "destination", "seq", "ack", "flags", "window"],
        "formats": [">u2", ">u2", ">u4", ">u4", ">u2", ">u2"],
        "offsets": [0, 2, 4, 8, 12, 14],
        "itemsize": 20,
    }
)
NEEDED_BYTES = 16
"""Of the header: up to the window. The checksum and the urgent pointer are not used."""

Columns = dict[str, NDArray[Any]]
"""Columns of ``Packets`` by name, without those that the capture file says (number, time, interface)."""


def columns(octets: Octets, cursor: Cursor) -> Columns:
    """Rows whose next header is TCP, with at least ``NEEDED_BYTES`` captured octets of it.

    A header length that cannot be (below 20 octets, or beyond the segment) leaves a row without payload. Of a header that was cut by the
    snap length only the options that are there count as header, so that nobody reads them in the next packet's octets.
    """
    header = octets.rows(cursor.at, HEADER)
    source_port, destination_port = header["source"].astype(np.int64), header["destination"].astype(np.int64)
    source, destination = endpoint_keys(octets, cursor.network, source_port, destination_port)
    identification, hops = identification_and_hops(octets, cursor.network)
    header_bytes = (header["flags"].astype(np.int64) >> 12) * 4
    possible = has_possible_length(octets, cursor)
    header_bytes = np.where(possible, header_bytes, 20)
    payload = cursor.at + header_bytes
    length = np.where(possible, cursor.wire_end - payload, 0)
    kept = np.clip((cursor.end - cursor.at) & -4, 20, header_bytes)
    return {
        "low": np.minimum(source, destination),
        "high": np.maximum(source, destination),
        "direction": source > destination,
        "seq": header["seq"],
        "ack": header["ack"],
        "flags": header["flags"] & 0x0FFF,
        "window": header["window"],
        "payload_offset": cursor.at + kept,
        "payload_bytes": length,
        "captured_payload_bytes": np.clip(cursor.end - payload, 0, length),
        "network_offset": cursor.network,
        "header_bytes": kept,
        "ip_id": identification,
        "hop_limit": hops,
    }


def has_possible_length(octets: Octets, cursor: Cursor) -> Bool:
    """Whether the data offset is at least 5 words and not beyond the segment."""
    header_bytes = (u8(octets, cursor, 12) >> 4) * 4
    possible: Bool = (header_bytes >= 20) & (cursor.at + header_bytes <= cursor.wire_end)
    return possible
