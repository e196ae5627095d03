"""Senders that number their packets: IPv4 identifications that rise by one per packet of the connection (Linux does, per socket).

Then a step of two says that a packet left the sender and never reached the capture, even where the stream shows no hole: a lost last
segment comes back as if it were new, and only the count tells it from a pause of the sender.
"""

from __future__ import annotations

import numpy as np

from netdiag.wire.flows import Flows
from netdiag.wire.tables import NONE, Bool, Int64
from netdiag.wire.tcp_flags import RST, SYN

_LEAST_PACKETS = 8
_STRAIGHT, _STRAIGHT_AFTER_SILENCE = 0.75, 0.6
"""Share of the steps, and of those after silence, that must be exactly one for missing packets to be counted. A lossy path leaves some
larger; a counter that several connections share takes its larger steps in the silences of each."""
_MOSTLY = 0.9
_NEAR = 1000
"""Steps of a burst, forward or back, are smaller than this where a counter runs at all."""
_SILENCE_NS = 10_000_000


def steps(flows: Flows, copies: Bool) -> Int64:
    """Of each row: how far the identification moved (modulo 2^16, signed) since the direction's previous packet; 0 where it has none.

    SYNs (a SYN-ACK's is unrelated to what follows), resets and captured copies do not count.
    """
    packets, stream = flows.packets, flows.stream
    out = np.zeros(len(packets), np.int64)
    rows = np.flatnonzero((packets.ip_id > 0) & ((packets.flags & (SYN | RST)) == 0) & ~copies)
    if rows.size < 2:
        return out
    same = stream[rows[1:]] == stream[rows[:-1]]
    moved = (packets.ip_id[rows[1:]] - packets.ip_id[rows[:-1]]).astype(np.int16).astype(np.int64)
    out[rows[1:]] = np.where(same, moved, 0)
    return out


def counting(flows: Flows, moved: Int64, *, straight: bool) -> Bool:
    """Of each direction: its packets are numbered one after the other. ``straight``: closely enough to count missing ones."""
    rows = np.flatnonzero(moved)
    size = np.abs(moved[rows])
    if not straight:
        return _share(flows, rows, size < _NEAR, _MOSTLY, _LEAST_PACKETS // 2)
    at = flows.packets.captured_at
    silent = at[rows] - at[np.maximum(rows - 1, 0)] > _SILENCE_NS
    alone = _share(flows, rows[silent], size[silent] == 1, _STRAIGHT_AFTER_SILENCE, 0)
    return alone & _share(flows, rows, size == 1, _STRAIGHT, _LEAST_PACKETS - 1)


def _share(flows: Flows, rows: Int64, good: Bool, least: float, least_rows: int) -> Bool:
    """Of each direction: it has enough of these rows, and enough of them are good."""
    count = len(flows.starts) - 1
    total = np.bincount(flows.stream[rows], minlength=count)
    return np.asarray((total >= least_rows) & (np.bincount(flows.stream[rows[good]], minlength=count) >= least * total))


def unseen_packets(flows: Flows, moved: Int64) -> Int64:
    """Of each direction: packets that the sender numbered but the capture never saw; NONE where its packets are not numbered."""
    count = len(flows.starts) - 1
    total = np.zeros(count, np.int64)
    rows = np.flatnonzero((moved != 0) & (np.abs(moved) < _NEAR) & (moved != 1))
    np.add.at(total, flows.stream[rows], moved[rows] - 1)  # what reordering skips it steps back again
    return np.where(counting(flows, moved, straight=True), np.maximum(total, 0), NONE)
