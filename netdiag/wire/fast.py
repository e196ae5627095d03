"""The common cases at full speed: TCP over IPv4 without options or over IPv6 without extension headers, behind a link header of fixed
length: one gather of whole rows per 16,384 packets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netdiag.wire.address import hash_v6
from netdiag.wire.octets import Octets
from netdiag.wire.tables import NONE, Bool, Int32, Int64, UInt64

Columns = dict[str, NDArray[Any]]
Rows = slice | Int64
Fill = Callable[[Int64, Int64, Columns, Rows], Bool]

CHUNK_ROWS = 16384
"""Rows whose gathered octets stay in the second-level cache."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A link header of fixed length: where it says what is inside, and which values mean IPv4."""

    header_bytes: int
    type_at: int | None
    type_format: str = ">u2"
    ipv4: tuple[int, ...] = (0x0800,)
    ipv6: tuple[int, ...] = (0x86DD,)


BSD_IPV6 = (10, 24, 28, 30, 0x0A000000, 0x18000000, 0x1C000000, 0x1E000000)
"""AF_INET6 of several systems, in both byte orders."""

SHAPES: dict[int, Shape] = {
    0: Shape(4, 0, "<u4", (2, 0x02000000), BSD_IPV6),
    1: Shape(14, 12),
    12: Shape(0, None),
    14: Shape(0, None),
    101: Shape(0, None),
    108: Shape(4, 0, "<u4", (2, 0x02000000), BSD_IPV6),
    113: Shape(16, 14),
    228: Shape(0, None),
    229: Shape(0, None),
    276: Shape(20, 0),
}
"""By LINKTYPE_."""


TCP_FIELDS = [
    ("source_port", ">u2", 0),
    ("destination_port", ">u2", 2),
    ("seq", ">u4", 4),
    ("ack", ">u4", 8),
    ("flags", ">u2", 12),
    ("window", ">u2", 14),
]
IPV4_FIELDS = [
    ("version", "u1", 0),
    ("length", ">u2", 2),
    ("identification", ">u2", 4),
    ("fragment", ">u2", 6),
    ("ttl", "u1", 8),
    ("protocol", "u1", 9),
    ("source", ">u4", 12),
    ("destination", ">u4", 16),
]
IPV6_FIELDS = [
    ("version", "u1", 0),
    ("length", ">u2", 4),
    ("protocol", "u1", 6),
    ("ttl", "u1", 7),
    ("source", "<u8", 8),
    ("source_end", "<u8", 16),
    ("destination", "<u8", 24),
    ("destination_end", "<u8", 32),
]


def row_dtype(shape: Shape, network: list[tuple[str, str, int]], network_bytes: int) -> np.dtype[Any]:
    """A whole row from the link header to the end of the fixed TCP header."""
    fields = [(name, form, shape.header_bytes + at) for name, form, at in network]
    fields += [(name, form, shape.header_bytes + network_bytes + at) for name, form, at in TCP_FIELDS]
    if shape.type_at is not None:
        fields.append(("type", shape.type_format, shape.type_at))
    return np.dtype(
        {
            "names": [name for name, _, _ in fields],
            "formats": [form for _, form, _ in fields],
            "offsets": [at for _, _, at in fields],
            "itemsize": shape.header_bytes + network_bytes + 20,
        }
    )


class FastPath:
    """Fills columns of ``Packets`` for rows of one link type."""

    def __init__(self, octets: Octets, link_type: int) -> None:
        self._octets = octets
        self._shape = SHAPES[link_type]
        self._four = row_dtype(self._shape, IPV4_FIELDS, 20)
        self._six = row_dtype(self._shape, IPV6_FIELDS, 40)
        self._versions: tuple[Fill, Fill] = (self._fill_v4, self._fill_v6)

    def fill(self, at: Int64, captured_bytes: Int64, columns: Columns, rows: slice) -> Bool:
        """Decode packets at ``at`` into ``columns[rows]``. Says which rows are right; the others hold nonsense and need the layers."""
        first, second = self._versions
        good = first(at, captured_bytes, columns, rows)
        found = int(np.count_nonzero(good))
        if found < len(at):
            rest = np.flatnonzero(~good)
            good[rest] = second(at[rest], captured_bytes[rest], columns, rest + rows.start)
            if int(np.count_nonzero(good)) > 2 * found:
                self._versions = (second, first)  # likelier for the next rows, too
        return good

    def _fill_v4(self, at: Int64, captured_bytes: Int64, columns: Columns, rows: Rows) -> Bool:
        header = self._octets.rows(at, self._four)
        good: Bool = header["version"] == 0x45
        good &= header["protocol"] == 6
        good &= (header["fragment"] & 0x3FFF) == 0
        good &= self._is_type(header, self._shape.ipv4)
        if not good.any():
            return good
        segment_bytes = header["length"].astype(np.int32) - 20
        source = (header["source"].astype(np.uint64) << np.uint64(16)) | header["source_port"]
        destination = (header["destination"].astype(np.uint64) << np.uint64(16)) | header["destination_port"]
        self._fill(columns, rows, header, source, destination)
        columns["ip_id"][rows] = header["identification"]
        return good & self._fill_extents(columns, rows, header, at, captured_bytes, segment_bytes, 20)

    def _fill_v6(self, at: Int64, captured_bytes: Int64, columns: Columns, rows: Rows) -> Bool:
        header = self._octets.rows(at, self._six)
        good: Bool = (header["version"] >> 4) == 6
        good &= header["protocol"] == 6
        good &= self._is_type(header, self._shape.ipv6)
        good &= header["length"] >= 20  # 0 is a jumbogram or segmentation offload
        if not good.any():
            return good
        source = hash_v6(header["source"], header["source_end"], header["source_port"])
        destination = hash_v6(header["destination"], header["destination_end"], header["destination_port"])
        self._fill(columns, rows, header, source, destination)
        columns["ip_id"][rows] = NONE
        return good & self._fill_extents(
            columns, rows, header, at, captured_bytes, header["length"].astype(np.int32), 40
        )

    def _is_type(self, header: NDArray[Any], types: tuple[int, ...]) -> Bool | bool:
        if self._shape.type_at is None:
            return True
        kind = header["type"]
        if len(types) > 2:
            return np.isin(kind, types)
        found: Bool = kind == types[0]
        for other in types[1:]:
            found |= kind == other
        return found

    def _fill(self, columns: Columns, rows: Rows, header: NDArray[Any], source: UInt64, destination: UInt64) -> None:
        columns["low"][rows] = np.minimum(source, destination)
        columns["high"][rows] = np.maximum(source, destination)
        columns["direction"][rows] = source > destination
        columns["seq"][rows] = header["seq"]
        columns["ack"][rows] = header["ack"]
        columns["flags"][rows] = header["flags"] & 0x0FFF
        columns["window"][rows] = header["window"]
        columns["hop_limit"][rows] = header["ttl"]

    def _fill_extents(
        self,
        columns: Columns,
        rows: Rows,
        header: NDArray[Any],
        at: Int64,
        captured_bytes: Int64,
        segment_bytes: Int32,
        network_bytes: int,
    ) -> Bool:
        """Where payloads are; says for which rows the lengths are possible."""
        network = at + self._shape.header_bytes
        segment, end = network + network_bytes, at + captured_bytes
        header_bytes = (header["flags"] >> 12) << 2
        payload_bytes = segment_bytes - header_bytes
        # Options that the snap length cut off do not count (see ``tcp.columns``).
        kept = np.minimum(header_bytes, (end - segment) & -4)
        columns["network_offset"][rows] = network
        columns["payload_offset"][rows] = segment + kept
        columns["payload_bytes"][rows] = payload_bytes
        columns["captured_payload_bytes"][rows] = np.clip(end - segment - header_bytes, 0, np.maximum(payload_bytes, 0))
        columns["header_bytes"][rows] = kept
        good: Bool = (header_bytes >= 20) & (payload_bytes >= 0) & (end - segment >= 20)
        return good
