"""Retransmissions that the receiver reported to have had already (D-SACK, RFC 2883): they were not needed."""

from __future__ import annotations

import numpy as np

from netdiag.plain import plain
from netdiag.wire.distinct import distinct
from netdiag.wire.flows import Flows
from netdiag.wire.options import sack_blocks
from netdiag.wire.tables import NONE, Bool, Int64
from netdiag.wire.tcp_flags import ACK

_LEAST_HEADER_BYTES = 20 + 12
"""Two NOPs and one SACK block."""
_WINDOW_NS = 10_000_000_000
"""A report this long after a retransmission is about another one."""
_LOOKED_AT = 8
"""Reports after a retransmission that are looked at."""


def reported_twice(flows: Flows, rows: Int64, begin: Int64, end: Int64) -> Bool:
    """Of each retransmitted packet (``begin:end`` are its octets): a later duplicate SACK of its peer covers all of it."""
    out = np.zeros(len(rows), np.bool_)
    reports = _reports(flows, distinct(flows.stream[rows] ^ 1))
    if reports is None:
        return out
    span = int(flows.packets.number.max()) + 1
    stream, at = flows.stream[rows], flows.packets.captured_at[rows]
    place = np.searchsorted(reports.stream * span + reports.number, stream * span + flows.packets.number[rows])
    going = np.arange(len(rows))
    for step in range(_LOOKED_AT):
        going = going[place[going] + step < len(reports.number)]
        one = place[going] + step
        near = (reports.stream[one] == stream[going]) & (reports.at[one] - at[going] <= _WINDOW_NS)
        going, one = going[near], one[near]
        covers = (reports.left[one] <= begin[going]) & (end[going] <= reports.right[one])
        out[going[covers]] = True
        going = going[~covers]
        if not going.size:
            break
    return out


@plain(frozen=True, slots=True)
class _Reports:
    """Duplicate SACKs by the direction whose octets they are about, in file order: frame number, time, and the octets."""

    stream: Int64
    number: Int64
    at: Int64
    left: Int64
    right: Int64


def _reports(flows: Flows, streams: Int64) -> _Reports | None:
    packets = flows.packets
    asked = np.zeros(len(flows.starts), np.bool_)
    asked[streams] = True
    rows = np.flatnonzero(
        (packets.header_bytes >= _LEAST_HEADER_BYTES) & asked[flows.stream] & ((packets.flags & ACK) != 0)
    )
    if not rows.size:
        return None
    blocks = sack_blocks(packets, rows, flows.buffer)
    ack = packets.ack[rows].astype(np.int64)
    below = _ahead(ack, blocks.first_left) < 0
    inside = (blocks.second_left != NONE) & (_ahead(blocks.first_left, blocks.second_left) <= 0)
    inside &= _ahead(blocks.first_right, blocks.second_right) >= 0
    chosen = np.flatnonzero((blocks.first_left != NONE) & (below | inside))
    if not chosen.size:
        return None
    stream = flows.stream[rows[chosen]] ^ 1
    chosen = chosen[np.argsort(stream, kind="stable")]
    rows, ack = rows[chosen], ack[chosen]
    offset = flows.sequence.acked[rows]
    return _Reports(
        stream=flows.stream[rows] ^ 1,
        number=packets.number[rows],
        at=packets.captured_at[rows],
        left=offset + _ahead(ack, blocks.first_left[chosen]),
        right=offset + _ahead(ack, blocks.first_right[chosen]),
    )


def _ahead(origin: Int64, number: Int64) -> Int64:
    """``number − origin`` in sequence space."""
    return ((number - origin + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
