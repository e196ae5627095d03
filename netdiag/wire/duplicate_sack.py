"""Retransmissions that the receiver reported to have had already (D-SACK, RFC 2883): they were not needed."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

from netdiag.wire.options import sack_blocks
from netdiag.wire.sequence import ACK
from netdiag.wire.tables import NONE, Bool, Int64

if TYPE_CHECKING:
    from netdiag.wire.connections import Flows

_LEAST_HEADER_BYTES = 20 + 12
"""Two NOPs and one SACK block."""
_WINDOW_NS = 10_000_000_000
"""A report this long after a retransmission is about another one."""


def reported_twice(flows: Flows, rows: Int64, begin: Int64, end: Int64) -> Bool:
    """Of each retransmitted packet (``begin:end`` are its octets): a later duplicate SACK of its peer covers all of it."""
    out = np.zeros(len(rows), np.bool_)
    reports = _reports(flows, np.unique(flows.stream[rows] ^ 1))
    if not reports:
        return out
    stream = flows.stream[rows].tolist()
    number, at = flows.packets.number[rows].tolist(), flows.packets.captured_at[rows].tolist()
    for i, (one, low, high) in enumerate(zip(stream, begin.tolist(), end.tolist(), strict=True)):
        for _, reported_at, left, right in _after(reports.get(one, []), number[i]):
            if reported_at - at[i] > _WINDOW_NS:
                break
            if left <= low and high <= right:
                out[i] = True
                break
    return out


_Report = tuple[int, int, int, int]


def _after(reports: list[_Report], number: int) -> list[_Report]:
    """The next few reports after a packet."""
    first = bisect_left(reports, (number,))
    return reports[first : first + 8]


def _reports(flows: Flows, streams: Int64) -> dict[int, list[_Report]]:
    """(frame number, time, left, right) of the duplicate SACKs, by the direction whose octets they are about."""
    packets = flows.packets
    asked = np.zeros(len(flows.starts), np.bool_)
    asked[streams] = True
    rows = np.flatnonzero(
        (packets.header_bytes >= _LEAST_HEADER_BYTES) & asked[flows.stream] & ((packets.flags & ACK) != 0)
    )
    if not rows.size:
        return {}
    blocks = sack_blocks(packets, rows, flows.buffer)
    ack = packets.ack[rows].astype(np.int64)
    below = _ahead(ack, blocks.first_left) < 0
    inside = (blocks.second_left != NONE) & (_ahead(blocks.first_left, blocks.second_left) <= 0)
    inside &= _ahead(blocks.first_right, blocks.second_right) >= 0
    chosen = np.flatnonzero((blocks.first_left != NONE) & (below | inside))
    found: dict[int, list[_Report]] = {}
    offset = flows.sequence.acked[rows[chosen]]
    left = offset + _ahead(ack[chosen], blocks.first_left[chosen])
    right = offset + _ahead(ack[chosen], blocks.first_right[chosen])
    stream = flows.stream[rows[chosen]] ^ 1
    for one, report in zip(
        stream.tolist(),
        zip(
            packets.number[rows[chosen]].tolist(),
            packets.captured_at[rows[chosen]].tolist(),
            left.tolist(),
            right.tolist(),
            strict=True,
        ),
        strict=True,
    ):
        found.setdefault(one, []).append(report)
    return found


def _ahead(origin: Int64, number: Int64) -> Int64:
    """``number − origin`` in sequence space."""
    return ((number - origin + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
