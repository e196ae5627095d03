"""Senders that a receive window stopped although they did not fill it to the last octet.

A sender waits for room for a whole segment rather than send less (RFC 9293 section 3.8.6.2.1), so what is left of the window is less than
that; and at a capture point away from the sender the window that counts is the one that it knew when it sent, a round trip to it and back
earlier, not the one announced meanwhile.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from netdiag.plain import plain
from netdiag.wire.flows import Flows
from netdiag.wire.sequence import UNKNOWN
from netdiag.wire.tables import NONE, Bool, Int64
from netdiag.wire.tcp_flags import FIN, RST, SYN

_PAUSE_NS = 1_000_000
"""Shorter pauses between segments are the link's or the host's."""
_RESUMED_NS = 2_000_000
"""A sender that waits for nothing but the window goes on so soon after it heard that it opened."""
_DEFAULT_MSS = 1460
_FULL_SIZED = 0.9
"""Of the largest: options and padding take some octets."""


@plain(frozen=True, slots=True)
class Stops:
    """Rows after which a sender had to stop, and the row of its next segment."""

    rows: Int64
    resumed: Int64


def window_limited(flows: Flows, edges: Int64, mss_bytes: Int64, halves: Int64) -> Stops:
    """``edges`` as ``window.window_edges``; ``mss_bytes``, per direction, what its SYN announced; ``halves`` as ``rtt.half_loops``."""
    loaded = _loaded(flows)
    before, after = _pauses(flows, loaded, edges)
    streams = flows.stream[before]
    bounds = [*np.flatnonzero(np.diff(streams, prepend=-1)).tolist(), len(streams)]
    rows: list[Int64] = []
    resumed: list[Int64] = []
    for begin, end in pairwise(bounds):
        mine, following = before[begin:end], after[begin:end]
        stopped = _of_stream(flows, edges, int(streams[begin]), mine, following, mss_bytes, halves)
        rows.append(mine[stopped])
        resumed.append(following[stopped])
    nothing = np.empty(0, np.int64)
    return Stops(np.concatenate([nothing, *rows]), np.concatenate([nothing, *resumed]))


def _loaded(flows: Flows) -> Int64:
    packets = flows.packets
    loaded = flows.sequence.occupies & (packets.payload_bytes > 0) & ((packets.flags & (SYN | FIN | RST)) == 0)
    return np.flatnonzero(loaded & (flows.peer_row != NONE))


def _pauses(flows: Flows, loaded: Int64, edges: Int64) -> tuple[Int64, Int64]:
    """Segments that are followed, after a pause, by the next octets; of streams that have sent enough to fill a window."""
    before, after = loaded[:-1], loaded[1:]
    at, sequence = flows.packets.captured_at, flows.sequence
    paused = at[after] - at[before] >= _PAUSE_NS
    before, after = before[paused], after[paused]
    peer = flows.peer_row[before]
    window = edges[peer] - np.maximum(sequence.acked[peer], 0)
    chosen = (flows.stream[before] == flows.stream[after]) & (sequence.end[before] == sequence.begin[after])
    chosen &= (edges[peer] != UNKNOWN) & (sequence.end[before] >= window - _DEFAULT_MSS)
    return before[chosen], after[chosen]


def _of_stream(
    flows: Flows, edges: Int64, stream: int, before: Int64, after: Int64, mss_bytes: Int64, halves: Int64
) -> Bool:
    """Which of one direction's pauses the peer's window made."""
    begin, end = int(flows.starts[stream ^ 1]), int(flows.starts[(stream ^ 1) + 1])
    packets, sequence = flows.packets, flows.sequence
    told_at, edge = packets.captured_at[begin:end], np.maximum.accumulate(edges[begin:end])
    # Half ``2c`` is from here to the server and back: what the server sends, it sends knowing what passed here so long before.
    loop_ns = max(0, int(halves[stream ^ 1]))
    known = np.searchsorted(told_at, packets.captured_at[before] - loop_ns, "right") - 1
    limit = edge[np.maximum(known, 0)]
    left = limit - sequence.end[before]
    segment = _segment_bytes(flows, stream, mss_bytes)
    stopped = (known >= 0) & (left >= 0) & (left < segment)
    stopped &= packets.payload_bytes[before] >= _FULL_SIZED * segment
    opening = np.searchsorted(edge, limit, "right")
    stopped &= opening < len(edge)
    opened_at = told_at[np.minimum(opening, len(edge) - 1)]
    late_ns = packets.captured_at[after] - opened_at - loop_ns
    found: Bool = stopped & (late_ns <= _RESUMED_NS + loop_ns // 4)
    return found


def _segment_bytes(flows: Flows, stream: int, mss_bytes: Int64) -> int:
    """A whole segment of this sender: the largest that it sent, but no more than its peer takes (frames may be merged ones)."""
    most = int(mss_bytes[stream ^ 1])
    largest = int(flows.packets.payload_bytes[flows.starts[stream] : flows.starts[stream + 1]].max())
    return min(largest, _DEFAULT_MSS if most == NONE else most)
