"""Receive windows: when a side announced none, and when its peer had filled what it announced (RFC 9293 section 3.8.6)."""

from __future__ import annotations

import numpy as np

from netdiag.wire.flows import Flows
from netdiag.wire.sequence import UNKNOWN
from netdiag.wire.stalls import StallKind, Stalls
from netdiag.wire.tables import NONE, Bool, Int64
from netdiag.wire.tcp_flags import FIN, RST, SYN
from netdiag.wire.window_limited import Stops

_LOOK_AHEAD = 1024
"""Announcements looked through one by one after a window that shrank, which RFC 9293 section 3.8.6 discourages."""


def zero_windows(flows: Flows, copies: Bool) -> Bool:
    """Packets that announce a window of 0 (as Wireshark: not on SYN, FIN or RST)."""
    packets = flows.packets
    zero: Bool = (packets.window == 0) & ((packets.flags & (SYN | FIN | RST)) == 0) & ~copies
    return zero


def zero_window_stalls(flows: Flows, zero: Bool) -> Stalls:
    """From the first announcement of 0 to the same side's next other one (or its connection's end): that side's receive buffer was full."""
    rows = np.flatnonzero(zero)
    stream = flows.stream
    previous = np.maximum(rows - 1, 0)
    begins = rows[(rows == 0) | ~zero[previous] | (stream[previous] != stream[rows])]
    speaks = np.flatnonzero(~zero & ((flows.packets.flags & RST) == 0))
    return _until(flows, begins, speaks, StallKind.ZERO_WINDOW)


def window_edges(flows: Flows, window_scale: Int64) -> Int64:
    """Of each row: the peer's stream offset up to which it lets the peer send; UNKNOWN where the scale is not known.

    ``window_scale`` per direction: the shift its own announcements carry, NONE when unknown. Windows on SYNs are not scaled.
    """
    packets, sequence = flows.packets, flows.sequence
    factor = (np.int64(1) << np.maximum(window_scale, 0))[flows.stream]
    factor[(packets.flags & SYN) != 0] = 1
    edges = packets.window * factor
    edges += sequence.acked
    edges[sequence.acked == UNKNOWN] = UNKNOWN
    if (window_scale == NONE).any():
        edges[(window_scale == NONE)[flows.stream]] = UNKNOWN
    return edges


def full_windows(flows: Flows, edges: Int64) -> Bool:
    """Packets whose payload ends exactly where the peer's last announcement lets it (as Wireshark)."""
    packets, sequence, peer = flows.packets, flows.sequence, flows.peer_row
    loaded: Bool = sequence.occupies & (packets.payload_bytes > 0) & ((packets.flags & (SYN | FIN | RST)) == 0)
    loaded &= (peer != NONE) & (edges[peer] == sequence.end) & (edges[peer] != UNKNOWN)
    return loaded


def full_window_stalls(flows: Flows, full: Bool, edges: Int64, stops: Stops) -> Stalls:
    """From a packet that filled the peer's window to the peer's next announcement that lets more through; and from one that left no room in
    it for another (``stops``) to the next."""
    rows = np.flatnonzero(full)
    if not rows.size and not stops.rows.size:
        return Stalls.none()
    packets = flows.packets
    opened = _openings(flows, edges, rows) if rows.size else rows
    first, last = np.concatenate((rows, stops.rows)), np.concatenate((opened, stops.resumed))
    started_at = packets.captured_at[first]
    ended_at = np.where(last == NONE, _connection_end(flows)[flows.connection[first]], packets.captured_at[last])
    return Stalls.of(
        connection=flows.connection[first],
        direction=flows.side[first],
        kind=StallKind.FULL_WINDOW,
        started_at=started_at,
        ended_at=np.maximum(ended_at, started_at),
        first_packet=packets.number[first],
        last_packet=np.where(last == NONE, NONE, packets.number[last]),
        stream=flows.stream[first],
    )


def _openings(flows: Flows, edges: Int64, rows: Int64) -> Int64:
    """Of each row: the peer's first packet after it that moves the window's edge; NONE when there is none."""
    peer = flows.peer_row[rows]
    limit, end = edges[peer], flows.starts[(flows.stream[rows] ^ 1) + 1]
    span = int(edges.max()) + 2
    highest = np.maximum.accumulate(flows.stream * span + np.clip(edges, -1, None))
    found = np.searchsorted(highest, flows.stream[peer] * span + limit, "right")
    found = np.where(found < end, found, NONE)
    for place in np.flatnonzero((found != NONE) & (found <= peer)).tolist():  # the window had been wider before
        found[place] = _next_above(edges, int(limit[place]), int(peer[place]) + 1, int(end[place]))
    return found


def _next_above(edges: Int64, limit: int, begin: int, end: int) -> int:
    """The next announcement beyond ``limit``, looked for not too far."""
    ahead = np.flatnonzero(edges[begin : min(end, begin + _LOOK_AHEAD)] > limit)
    return begin + int(ahead[0]) if ahead.size else NONE


def _until(flows: Flows, begins: Int64, speaks: Int64, kind: StallKind) -> Stalls:
    if not begins.size:
        return Stalls.none()
    packets = flows.packets
    place = np.searchsorted(speaks, begins)
    after = np.where(
        place < len(speaks), speaks[np.minimum(place, max(0, len(speaks) - 1))] if speaks.size else 0, NONE
    )
    after = np.where((after != NONE) & (flows.stream[after] == flows.stream[begins]), after, NONE)
    last_at = _connection_end(flows)[flows.connection[begins]]
    started_at = packets.captured_at[begins]
    ended_at = np.where(after == NONE, last_at, packets.captured_at[after])
    return Stalls.of(
        connection=flows.connection[begins],
        direction=flows.side[begins],
        kind=kind,
        started_at=started_at,
        ended_at=np.maximum(ended_at, started_at),
        first_packet=packets.number[begins],
        last_packet=np.where(after == NONE, NONE, packets.number[after]),
        stream=flows.stream[begins],
    )


def _connection_end(flows: Flows) -> Int64:
    """The time of each connection's last packet."""
    counts = np.diff(flows.starts)
    last = np.full(len(counts), np.iinfo(np.int64).min)
    last[counts > 0] = flows.packets.captured_at[flows.starts[1:][counts > 0] - 1]
    latest: Int64 = last.reshape(-1, 2).max(axis=1)
    return latest
