"""Sequence space: 32-bit sequence and acknowledgement numbers (RFC 9293 section 3.4) as 64-bit stream offsets, for all directions at once.

Offset 0 is the octet after the SYN; where no SYN was captured, the first octet of the stream that was. Numbers are taken relative to the
direction's base as signed 32-bit differences, which is exact for the first GiB; longer directions and those with stray packets are walked.
"""

from __future__ import annotations

import numpy as np

from netdiag.plain import plain
from netdiag.wire.distinct import distinct
from netdiag.wire.tables import Bool, Int64, Packets, UInt32
from netdiag.wire.tcp_flags import ACK, FIN, RST, SYN

UNKNOWN = -(1 << 61)
"""A number that is not there (no ACK flag) or that cannot belong to the stream."""
_NEAR = 1 << 30
"""Largest step that a sender can mean: the largest window (RFC 7323 section 2.3)."""
_REORDERING = 1 << 24
"""How far before the first packet of a capture that began mid-connection the stream may begin."""


@plain(frozen=True, slots=True, kw_only=True)
class SequenceSpace:
    """Columns beside ``Flows.packets``."""

    begin: Int64
    """Stream offset of the first payload octet of each packet (of its FIN, or of the next octet to be sent)."""
    end: Int64
    """Offset after the payload and the FIN, which takes one octet."""
    edge: Int64
    """Highest ``end`` of the same direction's earlier packets; 0 before there are any."""
    acked: Int64
    """The peer's stream offset that the packet acknowledges; UNKNOWN without ACK."""
    occupies: Bool
    """Whether the packet carries octets or a FIN that count: no RST, not far out of the window."""
    has_syn: Bool
    """Of each direction: its SYN (or SYN-ACK) was captured, so that offset 0 is really the beginning."""


def sequence_space(packets: Packets, starts: Int64) -> SequenceSpace:
    """Stream offsets of sorted packets; ``starts`` bounds the directions (``Flows.starts``)."""
    counts = np.diff(starts)
    direction = np.repeat(np.arange(len(counts)), counts)
    syn = (packets.flags & SYN) != 0
    base, has_syn = _bases(packets, starts, direction, syn)
    every = np.ones(len(packets), np.bool_)
    begin = _offsets(packets.seq, every, base, starts, direction) + syn
    late = _first_octet(packets, begin, starts, has_syn)
    begin -= late[direction]
    base += late.astype(np.uint32)
    end = begin + packets.payload_bytes + (packets.flags & FIN)
    occupies = _occupying(packets, begin)
    acks = (packets.flags & ACK) != 0
    peer_base = _peer_bases(packets, base, starts, acks)
    acked = _offsets(packets.ack, acks, peer_base, starts, direction)
    acked[~acks] = UNKNOWN
    return SequenceSpace(
        begin=begin,
        end=end,
        edge=running_edge(np.where(occupies, end, 0), direction, starts),
        acked=acked,
        occupies=occupies,
        has_syn=has_syn,
    )


def running_edge(end: Int64, direction: Int64, starts: Int64) -> Int64:
    """Of each row, the largest ``end`` of the rows before it in its direction, at least 0."""
    edge = np.zeros(len(end), np.int64)
    if not len(end):
        return edge
    span = max(0, int(end.max())) + 1
    if span * len(starts) >= 1 << 62:
        for begin, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            if stop - begin > 1:
                edge[begin + 1 : stop] = np.maximum.accumulate(end[begin : stop - 1])
        return np.maximum(edge, 0, out=edge)
    base = direction * span  # one running maximum over all directions: each starts above everything in those before it
    edge[1:] = np.maximum.accumulate(np.maximum(end, 0) + base)[:-1]
    edge[1:] -= base[1:]
    return np.maximum(edge, 0, out=edge)


def _occupying(packets: Packets, begin: Int64) -> Bool:
    loaded: Bool = (packets.payload_bytes > 0) | ((packets.flags & FIN) != 0)
    loaded &= ((packets.flags & RST) == 0) & (begin >= -_REORDERING)
    return loaded


def _bases(packets: Packets, starts: Int64, direction: Int64, syn: Bool) -> tuple[UInt32, Bool]:
    """The sequence number of offset 0 of each direction: after the SYN, else that of its first packet."""
    base = np.zeros(len(starts) - 1, np.uint32)
    present = np.flatnonzero(np.diff(starts))
    base[present] = packets.seq[starts[present]]
    has_syn = np.zeros(len(base), np.bool_)
    rows = np.flatnonzero(syn)
    base[direction[rows]] = packets.seq[rows] + np.uint32(1)
    has_syn[direction[rows]] = True
    several = direction[rows[packets.seq[rows] + np.uint32(1) != base[direction[rows]]]]
    for one in distinct(several).tolist():
        base[one] = _accepted(packets, starts, one)
    return base, has_syn


def _accepted(packets: Packets, starts: Int64, direction: int) -> int:
    """Of a direction with different SYNs (a server that answered a repeated SYN anew): the base that its first payload follows, else the
    one that the peer acknowledged last."""
    own, peer = (slice(int(starts[d]), int(starts[d + 1])) for d in (direction, direction ^ 1))
    flags = packets.flags[own]
    syns = packets.seq[own][(flags & SYN) != 0] + np.uint32(1)
    data = packets.seq[own][(packets.payload_bytes[own] > 0) & ((flags & (SYN | RST)) == 0)]
    if data.size:
        return int(syns[(data[0] - syns).argmin()])
    acks = packets.ack[peer][(packets.flags[peer] & (ACK | RST)) == ACK]
    accepted = acks[np.isin(acks, syns)]
    return int(accepted[-1] if accepted.size else syns[-1])


def _peer_bases(packets: Packets, base: UInt32, starts: Int64, acks: Bool) -> UInt32:
    """The base that each direction's acknowledgements refer to; its own first one where the peer has no packet in the capture."""
    peer = base.reshape(-1, 2)[:, ::-1].reshape(-1).copy()
    counts = np.diff(starts)
    alone = np.flatnonzero((counts > 0) & (counts.reshape(-1, 2)[:, ::-1].reshape(-1) == 0))
    for direction in alone.tolist():
        rows = np.flatnonzero(acks[starts[direction] : starts[direction + 1]])
        if rows.size:
            peer[direction] = packets.ack[int(starts[direction]) + int(rows[0])]
    return peer


def _first_octet(packets: Packets, begin: Int64, starts: Int64, has_syn: Bool) -> Int64:
    """How far the stream's first captured octet lies from its first packet's, per direction; 0 where the SYN tells.

    The capture may begin between segments out of order, or with a keep-alive probe, whose sequence number is one too low. -1: the SYN
    takes no number.
    """
    first = np.zeros(len(has_syn), np.int64)
    first[_uncounted_syns(packets, begin, starts, has_syn)] = -1
    unknown = np.flatnonzero(~has_syn & (np.diff(starts) > 0))
    if not unknown.size:
        return first
    loaded = (packets.payload_bytes > 0) & ((packets.flags & RST) == 0) & (begin > -_REORDERING)
    none = np.int64(1 << 60)
    least = np.minimum.reduceat(np.where(loaded, begin, none), starts[:-1][np.diff(starts) > 0])
    found = np.full(len(has_syn), none)
    found[np.diff(starts) > 0] = least
    late = found[unknown]
    first[unknown] = np.where((late == none) | (late > 1), 0, late)
    return first


def _uncounted_syns(packets: Packets, begin: Int64, starts: Int64, has_syn: Bool) -> Int64:
    """Directions whose first payload has the SYN's own number, as in captures made by hand. A keep-alive probe has at most one octet."""
    early = (begin == -1) & (packets.payload_bytes > 1)
    if not early.any():
        return np.empty(0, np.int64)
    direction = np.repeat(np.arange(len(has_syn)), np.diff(starts))
    loaded = np.flatnonzero((packets.payload_bytes > 0) & ((packets.flags & (SYN | RST)) == 0))[::-1]
    first = np.full(len(has_syn), -1, np.int64)
    first[direction[loaded]] = loaded
    return np.flatnonzero(has_syn & (first >= 0) & early[first])


def _offsets(numbers: UInt32, valid: Bool, base: UInt32, starts: Int64, direction: Int64) -> Int64:
    relative = (numbers - base[direction]).view(np.int32).astype(np.int64)
    far = valid & ((relative >= _NEAR) | (relative < -_NEAR))
    if far.any():
        for one in distinct(direction[far]).tolist():
            rows = np.arange(int(starts[one]), int(starts[one + 1]))
            rows = rows[valid[rows]]
            relative[rows] = unwrapped(numbers[rows], int(base[one]))
    return relative


def unwrapped(numbers: UInt32, base: int) -> Int64:
    """Offsets from ``base`` of one direction's numbers in file order, past any number of wraps; UNKNOWN for stray numbers.

    A number more than 1 GiB from the last good one is stray unless its successor agrees with it.
    """
    before = np.concatenate((np.array([base], np.uint32), numbers[:-1]))
    steps = (numbers - before).view(np.int32).astype(np.int64)
    if not ((steps >= _NEAR) | (steps < -_NEAR)).any():
        return np.cumsum(steps)
    return _walked(numbers.tolist(), base)


def _walked(numbers: list[int], base: int) -> Int64:
    out = np.empty(len(numbers), np.int64)
    last, at = base, 0
    for i, number in enumerate(numbers):
        step = _signed(number - last)
        agreed = i + 1 < len(numbers) and -_NEAR <= _signed(numbers[i + 1] - number) < _NEAR
        if -_NEAR <= step < _NEAR or agreed:
            last, at = number, at + step
            out[i] = at
        else:
            out[i] = UNKNOWN
    return out


def _signed(difference: int) -> int:
    return ((difference + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
