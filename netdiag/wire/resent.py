"""Why a packet from before the edge was sent, or captured, there: retransmission by kind, reordering, keep-alive, captured copy.

The rules follow Wireshark's sequence analysis where that is sound, and go on where it stops: octets that were seen before are never "out of
order"; reordering is measured from the packet that left the hole, not from the latest one, by the least round trip that the connection
showed, not by its handshake's alone, and the sender's own order (IP identification, TCP time stamps) is believed before the clock; recovery
counts as fast for every segment that acknowledgements asked for; a duplicate SACK proves that a retransmission was not needed.
"""

from __future__ import annotations

import numpy as np

from netdiag.plain import plain
from netdiag.wire.duplicate_sack import reported_twice
from netdiag.wire.flows import Flows
from netdiag.wire.holes import Fills
from netdiag.wire.options import sack_blocks, time_stamps
from netdiag.wire.tables import NONE, Bool, Int64, SegmentKind, UInt8
from netdiag.wire.tcp_flags import FIN

DEFAULT_RTT_NS = 3_000_000
"""Taken for the round trip where the capture shows none (as Wireshark)."""
FAST_NS = 20_000_000
"""A retransmission this soon after a duplicate ACK was caused by it, at the sender (as Wireshark)."""
MIN_RTO_NS = 180_000_000
"""Linux waits at least 200 ms; less a little for its timer's granularity."""
_REORDERING_SHARE = 4
"""A retransmission comes a round trip after what left the hole, and the least one measured has some waiting in it that this one may lack. As
a sender that knows no better does not expect more reordering than a quarter of it (RFC 8985 section 6.2), nothing is lost by a quarter less."""
_COUNTED = 1000
"""Two packets of one burst have identifications no further apart."""


@plain(frozen=True, slots=True)
class Resent:
    """Packets with octets or a FIN from before the edge, in row order."""

    rows: Int64
    kinds: UInt8
    """``SegmentKind``; NEW for the segment that follows a zero-window probe."""
    by_timer: Bool
    """A retransmission that nothing but a timer explains: it came a retransmission time-out after the direction's previous packet."""


def late_rows(flows: Flows) -> Int64:
    """The packets that ``resent`` is about."""
    return np.flatnonzero(flows.sequence.occupies & (flows.sequence.begin < flows.sequence.edge))


def resent(
    flows: Flows,
    rows: Int64,
    fills: Fills,
    copies: Bool,
    probes: Bool,
    *,
    rtt_ns: Int64,
    least_rtt_ns: Int64,
    duplicate_acks: Int64,
    numbering: Bool,
) -> Resent:
    """Classify the ``late_rows``. ``probes`` are the keep-alives; ``rtt_ns`` (the handshake's) and ``least_rtt_ns`` per connection (NONE:
    unknown); ``duplicate_acks`` per row: how many in a row the sender had sent by then; ``numbering`` per direction: its packets carry a
    running count."""
    kinds = np.full(len(rows), SegmentKind.RETRANSMISSION, np.uint8)
    if not rows.size:
        return Resent(rows, kinds, np.zeros(0, np.bool_))
    late = _Late.of(flows, rows, fills, rtt_ns, least_rtt_ns)
    kinds[late.tail_loss_probe()] = SegmentKind.TAIL_LOSS_PROBE
    kinds[late.asked_for(duplicate_acks)] = SegmentKind.FAST_RETRANSMISSION
    kinds[_reordered(flows, fills, rows, late.least_rtt_ns, numbering)] = SegmentKind.OUT_OF_ORDER
    kinds[late.acknowledged_before() | late.reported_twice()] = SegmentKind.SPURIOUS
    kinds[late.after_window_probe()] = SegmentKind.NEW
    kinds[probes[rows] & (late.payload == 1)] = SegmentKind.KEEP_ALIVE
    kinds[copies[rows]] = SegmentKind.CAPTURE_DUPLICATE
    by_timer = (late.quiet_ns >= MIN_RTO_NS) & (kinds == SegmentKind.RETRANSMISSION)
    return Resent(rows, kinds, by_timer)


@plain(slots=True)
class _Late:
    """The packets in question, and what had been captured before each."""

    flows: Flows
    rows: Int64
    begin: Int64
    end: Int64
    """Without the FIN."""
    edge: Int64
    payload: Int64
    fin: Bool
    peer: Int64
    acked: Int64
    """What the peer had acknowledged."""
    brings_new: Bool
    rtt_ns: Int64
    """The handshake's: how long word may take."""
    least_rtt_ns: Int64
    """How long it takes at least."""
    quiet_ns: Int64
    """Since the direction's previous packet."""
    answered_ns: Int64
    """Since the peer's last packet."""

    @classmethod
    def of(cls, flows: Flows, rows: Int64, fills: Fills, rtt_ns: Int64, least_rtt_ns: Int64) -> _Late:
        sequence, packets = flows.sequence, flows.packets
        at, peer, fin = packets.captured_at[rows], flows.peer_row[rows], (packets.flags[rows] & FIN) != 0
        edge, end = sequence.edge[rows], sequence.end[rows]
        rtt, least = rtt_ns[flows.connection[rows]], least_rtt_ns[flows.connection[rows]]
        least = np.where(least == NONE, DEFAULT_RTT_NS, least)
        return cls(
            flows=flows,
            rows=rows,
            begin=sequence.begin[rows],
            end=end - fin,
            edge=edge,
            payload=packets.payload_bytes[rows].astype(np.int64),
            fin=fin,
            peer=peer,
            acked=np.where(peer == NONE, NONE, sequence.acked[peer]),
            brings_new=np.isin(rows, np.fromiter(fills.ranges, np.int64, len(fills.ranges))) | (end > edge),
            rtt_ns=np.where(rtt == NONE, least, rtt),
            least_rtt_ns=least,
            quiet_ns=at - packets.captured_at[np.maximum(rows - 1, 0)],
            answered_ns=at - packets.captured_at[peer],
        )

    def after_window_probe(self) -> Bool:
        """Begins with the octet that probed a closed window (RFC 9293 section 3.8.6.1), and goes on beyond the edge."""
        return np.asarray((self.payload > 1) & (self.begin == self.edge - 1) & (self.end > self.edge))

    def acknowledged_before(self) -> Bool:
        return np.asarray(~self.brings_new & (self.end <= self.acked) & (self.payload > 0))

    def reported_twice(self) -> Bool:
        return ~self.brings_new & (self.payload > 0) & reported_twice(self.flows, self.rows, self.begin, self.end)

    def asked_for(self, duplicate_acks: Int64) -> Bool:
        """While the peer repeats its acknowledgement or reports octets beyond a hole (RFC 6675, RFC 8985), and as soon after it as the
        word can travel."""
        blocks = sack_blocks(self.flows.packets, np.maximum(self.peer, 0), self.flows.buffer)
        asks = (duplicate_acks[self.peer] >= 1) | (blocks.first_left != NONE)
        asks &= (self.peer != NONE) & (self.begin >= self.acked)
        return np.asarray(asks & (self.answered_ns < np.maximum(FAST_NS, self.rtt_ns + self.rtt_ns // 2)))

    def tail_loss_probe(self) -> Bool:
        """The last segment, again for the first time, after silence: what a sender with RACK-TLP does before its time-out (RFC 8985
        section 7.3). With several segments outstanding it can be nothing else; with one, a sender without TLP would look the same."""
        last = (self.end == self.edge - self.fin) & (self.payload > 0) & (self.quiet_ns > self.least_rtt_ns)
        return np.asarray(last & self.for_the_first_time())

    def for_the_first_time(self) -> Bool:
        stream = self.flows.stream[self.rows]
        order = np.lexsort((self.rows, self.begin, stream))
        again = np.zeros(len(order), np.bool_)
        again[1:] = (self.begin[order[1:]] == self.begin[order[:-1]]) & (stream[order[1:]] == stream[order[:-1]])
        first = np.empty_like(again)
        first[order] = ~again
        return first


def _reordered(flows: Flows, fills: Fills, rows: Int64, rtt_ns: Int64, numbering: Bool) -> Bool:
    """Fills a hole, and was sent before the packet that left it: by the sender's packet count where it keeps one, by its time stamps where
    they differ (RFC 7323 section 3.2: a retransmission has the clock of its own sending), else because it came sooner than word of the
    hole could reach the sender and a retransmission come back."""
    out = np.zeros(len(rows), np.bool_)
    if not fills.first_hole:
        return out
    filling = np.array(sorted(fills.first_hole), np.int64)
    after = np.array([fills.first_hole[row].after_row for row in filling.tolist()], np.int64)
    place = np.searchsorted(rows, filling)
    at, identification = flows.packets.captured_at, flows.packets.ip_id
    soon = at[filling] - at[after] < rtt_ns[place] - rtt_ns[place] // _REORDERING_SHARE
    ahead = (identification[filling] - identification[after]).astype(np.int16).astype(np.int64)
    numbered = (identification[filling] > 0) & (identification[after] > 0) & numbering[flows.stream[filling]]
    counted = numbered & (ahead != 0) & (np.abs(ahead) < _COUNTED)
    later = _stamped_later(flows, filling, after)
    out[place] = np.select([counted, later != 0], [ahead < 0, later < 0], soon)
    return out


def _stamped_later(flows: Flows, rows: Int64, than: Int64) -> Int64:
    """By how many ticks of the sender's clock; 0 also where either has no time stamp."""
    one, other = (time_stamps(flows.packets, each, flows.buffer) for each in (rows, than))
    ticks = (one - other).astype(np.int32).astype(np.int64)
    return np.where((one == NONE) | (other == NONE), 0, ticks)
