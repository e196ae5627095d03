"""Why a packet from before the edge was sent or captured there: retransmission by kind, reordering, keep-alive, captured copy.

The rules follow Wireshark's sequence analysis where that is sound, and differ where it cannot know: octets that were seen before are never
"out of order", and reordering is measured from the packet that left the hole, not from the latest one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from netdiag.wire.holes import Fills
from netdiag.wire.sequence import FIN
from netdiag.wire.tables import NONE, Bool, Int64, SegmentKind, UInt8

if TYPE_CHECKING:
    from netdiag.wire.connections import Flows

DEFAULT_RTT_NS = 3_000_000
"""Reordering limit where no handshake was captured (as Wireshark)."""
FAST_NS = 20_000_000
"""A fast retransmission leaves within this of the duplicate ACK that caused it (as Wireshark)."""
DUPLICATE_ACKS = 2
"""As Wireshark: three by RFC 5681, but one may be missing from the capture."""
MIN_RTO_NS = 180_000_000
"""Linux waits at least 200 ms; less a little for its timer's granularity."""


@dataclass(frozen=True, slots=True)
class Resent:
    """Packets with octets or a FIN from before the edge, in row order."""

    rows: Int64
    kinds: UInt8
    """``SegmentKind``; NEW for the segment that follows a zero-window probe."""
    by_timer: Bool
    """A retransmission that nothing but a timer explains: it came a retransmission time-out after the direction's previous packet."""


def resent(flows: Flows, fills: Fills, copies: Bool, rtt_ns: Int64, duplicate_acks: Int64) -> Resent:
    """Classify. ``rtt_ns`` per connection (NONE: unknown); ``duplicate_acks`` per row: how many in a row the sender had sent by then."""
    sequence, packets = flows.sequence, flows.packets
    rows = np.flatnonzero(sequence.occupies & (sequence.begin < sequence.edge))
    kinds = np.full(len(rows), SegmentKind.RETRANSMISSION, np.uint8)
    by_timer = np.zeros(len(rows), np.bool_)
    if not rows.size:
        return Resent(rows, kinds, by_timer)
    begin, end, edge = sequence.begin[rows], sequence.end[rows], sequence.edge[rows]
    at, payload = packets.captured_at[rows], packets.payload_bytes[rows]
    fin = (packets.flags[rows] & FIN) != 0
    peer = flows.peer_row[rows]
    acked = np.where(peer == NONE, sequence.acked.min(), sequence.acked[peer])
    brings_new = np.isin(rows, np.fromiter(fills.ranges, np.int64, len(fills.ranges))) | (end > edge)
    limit = rtt_ns[flows.connection[rows]]
    limit = np.where(limit == NONE, DEFAULT_RTT_NS, limit)

    tail = end >= edge
    previous = np.maximum(rows - 1, 0)
    quiet_ns = at - packets.captured_at[previous]
    by_timer = quiet_ns >= MIN_RTO_NS
    probe = tail & (begin > acked) & (acked >= 0) & (payload > 0) & (quiet_ns > limit)
    kinds[probe] = SegmentKind.TAIL_LOSS_PROBE
    kinds[_reordered(flows, fills, rows, limit)] = SegmentKind.OUT_OF_ORDER
    asked = (peer != NONE) & (acked == begin) & (duplicate_acks[peer] >= DUPLICATE_ACKS)
    asked &= at - packets.captured_at[peer] < FAST_NS
    kinds[asked] = SegmentKind.FAST_RETRANSMISSION
    kinds[~brings_new & (end - fin <= acked) & (payload > 0)] = SegmentKind.SPURIOUS
    kinds[(payload > 1) & (begin == edge - 1) & (end > edge)] = SegmentKind.NEW
    kinds[(payload == 1) & ~fin & (begin == edge - 1)] = SegmentKind.KEEP_ALIVE
    kinds[copies[rows]] = SegmentKind.CAPTURE_DUPLICATE
    by_timer &= kinds == SegmentKind.RETRANSMISSION
    return Resent(rows, kinds, by_timer)


def _reordered(flows: Flows, fills: Fills, rows: Int64, limit: Int64) -> Bool:
    """Fills a hole sooner after the hole appeared than word of it could reach the sender and a retransmission come back."""
    at = flows.packets.captured_at
    out = np.zeros(len(rows), np.bool_)
    place = {row: i for i, row in enumerate(rows.tolist())} if fills.first_hole else {}
    for row, hole in fills.first_hole.items():
        i = place.get(row)
        if i is None:
            continue
        out[i] = int(at[row]) - int(at[hole.after_row]) < int(limit[i])
    return out
