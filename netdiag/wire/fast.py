"""The common case at full speed: IPv4 without options and TCP behind a link header of fixed length, one gather per 8,192 packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netdiag.wire.octets import Octets
from netdiag.wire.tables import Bool, Int64

CHUNK_ROWS = 8192
"""Rows whose gathered octets stay in the second-level cache."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A link header of fixed length: where it says what is inside, and which values mean IPv4."""

    header_bytes: int
    type_at: int | None
    type_format: str = ">u2"
    ipv4: tuple[int, ...] = (0x0800,)


SHAPES: dict[int, Shape] = {
    0: Shape(4, 0, "<u4", (2, 0x02000000)),
    1: Shape(14, 12),
    12: Shape(0, None),
    14: Shape(0, None),
    101: Shape(0, None),
    108: Shape(4, 0, "<u4", (2, 0x02000000)),
    113: Shape(16, 14),
    228: Shape(0, None),
    276: Shape(20, 0),
}
"""By LINKTYPE_."""


def row_dtype(shape: Shape) -> np.dtype[Any]:
    """A whole row from the link header to the TCP window."""
    fields = [
        ("version", "u1", 0),
        ("length", ">u2", 2),
        ("identification", ">u2", 4),
        ("fragment", ">u2", 6),
        ("ttl", "u1", 8),
        ("protocol", "u1", 9),
        ("source", ">u4", 12),
        ("destination", ">u4", 16),
        ("source_port", ">u2", 20),
        ("destination_port", ">u2", 22),
        ("seq", ">u4", 24),
        ("ack", ">u4", 28),
        ("flags", ">u2", 32),
        ("window", ">u2", 34),
    ]
    names = [name for name, _, _ in fields]
    formats = [form for _, form, _ in fields]
    offsets = [shape.header_bytes + at for _, _, at in fields]
    if shape.type_at is not None:
        names, formats, offsets = [*names, "type"], [*formats, shape.type_format], [*offsets, shape.type_at]
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": shape.header_bytes + 40})


class FastPath:
    """Fills columns of ``Packets`` for rows of one link type."""

    def __init__(self, octets: Octets, link_type: int) -> None:
        self._octets = octets
        self._shape = SHAPES[link_type]
        self._dtype = row_dtype(self._shape)

    def fill(self, at: Int64, captured_bytes: Int64, columns: dict[str, NDArray[Any]], rows: slice) -> Bool:
        """Decode packets at ``at`` into ``columns[rows]``. Says which rows are right; the others hold nonsense and need the layers."""
        shape = self._shape
        header = self._octets.rows(at, self._dtype)
        good = self._is_common(header, captured_bytes)
        length = header["length"].astype(np.int32)
        flags = header["flags"].astype(np.uint16)
        header_bytes = (flags >> 12) << 2
        payload_bytes = length - 20 - header_bytes
        good &= (header_bytes >= 20) & (payload_bytes >= 0)
        source = (header["source"].astype(np.uint64) << np.uint64(16)) | header["source_port"]
        destination = (header["destination"].astype(np.uint64) << np.uint64(16)) | header["destination_port"]
        network = at + shape.header_bytes
        payload = network + 20 + header_bytes
        np.minimum(source, destination, out=columns["low"][rows])
        np.maximum(source, destination, out=columns["high"][rows])
        np.greater(source, destination, out=columns["direction"][rows], casting="unsafe")
        columns["seq"][rows] = header["seq"]
        columns["ack"][rows] = header["ack"]
        columns["flags"][rows] = flags & 0x0FFF
        columns["window"][rows] = header["window"]
        columns["payload_offset"][rows] = payload
        columns["payload_bytes"][rows] = payload_bytes
        columns["captured_payload_bytes"][rows] = np.clip(
            at + captured_bytes - payload, 0, np.maximum(payload_bytes, 0)
        )
        columns["network_offset"][rows] = network
        columns["header_bytes"][rows] = header_bytes
        columns["ip_id"][rows] = header["identification"]
        columns["hop_limit"][rows] = header["ttl"]
        return good

    def _is_common(self, header: NDArray[Any], captured_bytes: Int64) -> Bool:
        good: Bool = header["version"] == 0x45
        good &= header["protocol"] == 6
        good &= (header["fragment"] & 0x3FFF) == 0
        good &= captured_bytes >= self._shape.header_bytes + 40
        if self._shape.type_at is not None:
            kind = header["type"]
            first, *others = self._shape.ipv4
            is_ipv4 = kind == first
            for other in others:
                is_ipv4 |= kind == other
            good &= is_ipv4
        return good
