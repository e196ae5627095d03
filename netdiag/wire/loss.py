"""Time lost to holes, and octets that the capture (not the network) lost."""

from __future__ import annotations

import numpy as np

from netdiag.wire.flows import Flows
from netdiag.wire.packet_count import counting
from netdiag.wire.stalls import StallKind, Stalls
from netdiag.wire.stream_order import in_stream_order, streams_of
from netdiag.wire.tables import NONE, Bool, Int64, SegmentKind, Segments
from netdiag.wire.tcp_flags import FIN
from netdiag.wire.transmissions import transmissions

_MOST_UNSEEN = 11
"""A larger step of the identification at one place is more than a flight's loss."""
_LEAST_SILENCE_NS = 10_000_000
"""No sender retransmits by timer sooner (RFC 8985 section 7.2; Linux' least is two jiffies)."""


def loss_stalls(flows: Flows) -> Stalls:
    """For each hole that was filled: from when the first octet after it was seen until it was deliverable.

    Holes of a direction that were open at the same time are counted once, so that the sum never exceeds the time that passed.
    """
    holes = [hole for hole in transmissions(flows).fills.holes if hole.filled_row != NONE]
    if not holes:
        return Stalls.none()
    after = np.array([hole.after_row for hole in holes], np.int64)
    filled = np.array([hole.filled_row for hole in holes], np.int64)
    packets = flows.packets
    started_at = packets.captured_at[after]
    ended_at = np.maximum(packets.captured_at[filled], started_at)
    reordered = _kind_of(flows, filled) == SegmentKind.OUT_OF_ORDER
    parts = [
        Stalls.of(
            connection=flows.connection[after[chosen]],
            direction=flows.side[after[chosen]],
            kind=kind,
            started_at=started_at[chosen],
            ended_at=ended_at[chosen],
            first_packet=packets.number[after[chosen]],
            last_packet=packets.number[filled[chosen]],
            stream=flows.stream[after[chosen]],
        )
        for kind, chosen in ((StallKind.LOSS, ~reordered), (StallKind.REORDERING, reordered))
        if chosen.any()
    ]
    return Stalls.concat(parts)


def loss_beyond_stalls(flows: Flows) -> Stalls:
    """For octets sent again although the capture had seen them (and not for nothing): from their first transmission to the last."""
    found, packets, sequence = transmissions(flows).resent, flows.packets, flows.sequence
    late = np.isin(
        found.kinds, (SegmentKind.RETRANSMISSION, SegmentKind.FAST_RETRANSMISSION, SegmentKind.TAIL_LOSS_PROBE)
    )
    ranges = transmissions(flows).fills.ranges
    filling = np.fromiter(ranges, np.int64, len(ranges))
    rows = found.rows[late & ~np.isin(found.rows, filling)]
    first = np.flatnonzero(sequence.occupies & (sequence.begin >= sequence.edge))
    if not rows.size or not first.size:  # octets before the first SYN alone are no first transmission of anything
        return Stalls.none()
    span = int(sequence.end[first].max()) + 2
    keys = flows.stream[first] * span + sequence.end[first]
    place = np.searchsorted(keys, flows.stream[rows] * span + np.maximum(sequence.begin[rows], 0), "right")
    original = first[np.minimum(place, len(first) - 1)]
    known = (flows.stream[original] == flows.stream[rows]) & (original < rows)
    rows, original = rows[known], original[known]
    started_at = packets.captured_at[original]
    return Stalls.of(
        connection=flows.connection[rows],
        direction=flows.side[rows],
        kind=StallKind.LOSS_BEYOND,
        started_at=started_at,
        ended_at=np.maximum(packets.captured_at[rows], started_at),
        first_packet=packets.number[original],
        last_packet=packets.number[rows],
        stream=flows.stream[rows],
    )


def unseen_loss_stalls(flows: Flows) -> Stalls:
    """Silences that end with new data before which the sender had numbered a packet that was never captured, although there was
    nothing that a bare acknowledgement could have been about."""
    packets, sequence = flows.packets, flows.sequence
    moved, stream = transmissions(flows).identification_steps, flows.stream
    fresh = (
        sequence.occupies & (sequence.begin == sequence.edge) & (packets.payload_bytes > 0) & (flows.peer_row != NONE)
    )
    rows = np.flatnonzero((moved >= 2) & (moved <= _MOST_UNSEEN) & fresh)
    rows = rows[counting(flows, moved, straight=True)[stream[rows]]] if rows.size else rows
    if not rows.size:
        return Stalls.none()
    peer = flows.peer_row[rows]
    said = np.maximum(sequence.edge[peer], np.where(sequence.occupies[peer], sequence.end[peer], 0))
    rtt_ns = transmissions(flows).handshake.rtt_ns[flows.connection[rows]]
    quiet_ns = packets.captured_at[rows] - packets.captured_at[rows - 1]
    rows = rows[(sequence.acked[rows - 1] >= said) & (quiet_ns > np.maximum(rtt_ns, _LEAST_SILENCE_NS))]
    return Stalls.of(
        connection=flows.connection[rows],
        direction=flows.side[rows],
        kind=StallKind.UNSEEN_LOSS,
        started_at=packets.captured_at[rows - 1],
        ended_at=packets.captured_at[rows],
        first_packet=packets.number[rows - 1],
        last_packet=packets.number[rows],
        stream=stream[rows],
    )


def _kind_of(flows: Flows, rows: Int64) -> Int64:
    found = transmissions(flows).resent
    place = np.minimum(np.searchsorted(found.rows, rows), len(found.rows) - 1)
    return np.where(found.rows[place] == rows, found.kinds[place], SegmentKind.NEW).astype(np.int64)


def missing_bytes(flows: Flows, segments: Segments, acknowledged: Int64) -> Int64:
    """Of each direction: octets that its peer acknowledged but that are in no captured packet."""
    count = len(flows.starts) - 1
    acknowledged = np.where(acknowledged == np.iinfo(np.int64).max, 0, acknowledged)
    order = in_stream_order(segments)
    stream = streams_of(segments)[order]
    begin, end = segments.new_offset[order], (segments.stream_offset + segments.length)[order]
    before = np.zeros(len(order), np.int64)
    before[1:] = np.where(stream[1:] == stream[:-1], end[:-1], 0)
    gap = np.maximum(np.minimum(begin, acknowledged[stream]) - before, 0)
    missing = np.zeros(count, np.int64)
    np.add.at(missing, stream[gap > 0], gap[gap > 0])
    missing += _after_the_last(flows, acknowledged)
    return missing


def _after_the_last(flows: Flows, acknowledged: Int64) -> Int64:
    """Acknowledged beyond everything captured. A single octet is the FIN's where none was captured: no payload is missing."""
    sequence, count = flows.sequence, len(flows.starts) - 1
    top, fin = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    rows = np.flatnonzero(sequence.occupies)
    if rows.size:
        first = np.flatnonzero(np.diff(flows.stream[rows], prepend=-1))
        top[flows.stream[rows[first]]] = np.maximum(np.maximum.reduceat(sequence.end[rows], first), 0)
    fin[flows.stream[rows[(flows.packets.flags[rows] & FIN) != 0]]] = True
    beyond = np.maximum(acknowledged - top, 0)
    return np.asarray(np.where(~fin, beyond - (beyond == 1), beyond))


def open_holes(flows: Flows) -> Bool:
    """Of each direction: a hole was left that no captured packet filled."""
    out = np.zeros(len(flows.starts) - 1, np.bool_)
    for hole in transmissions(flows).fills.holes:
        if hole.filled_row == NONE:
            out[hole.direction] = True
    return out
