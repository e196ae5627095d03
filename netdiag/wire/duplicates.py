"""The same packet captured twice: both ports of a mirror, two interfaces, ingress and egress. A copy says nothing about the network.

A copy has the sequence numbers, flags, window and length of an earlier packet of its direction. Where the sender numbers its packets, the
IPv4 identification tells copies from retransmissions (a retransmission is a new packet); where it does not, only a copy within a
millisecond is one, sooner than any retransmission.
"""

from __future__ import annotations

import numpy as np

from netdiag.plain import plain
from netdiag.wire.options import option_lists
from netdiag.wire.sequence import SequenceSpace
from netdiag.wire.tables import Bool, Buffer, Int64, Packets
from netdiag.wire.tcp_flags import SYN

COPY_NS = 100_000_000
"""Same identification within this: a copy (802.11 retries arrive tens of milliseconds apart). Some stacks keep the identification on a
retransmission, which takes a time-out of 200 ms or more."""
UNNUMBERED_COPY_NS = 1_000_000
_LOOK_BACK = 32
"""How many earlier packets of the direction are compared; a mirror delivers copies within a burst."""
_MANY = 0.25
"""From this share of copied data packets on, unnumbered pure acknowledgements are believed to be copies too."""


@plain(frozen=True, slots=True)
class Copies:
    """What was captured twice."""

    rows: Bool
    """Of each row: it is a further copy of an earlier row."""
    data: int
    """Packets with data, FIN or SYN, copies included."""
    data_copies: int

    @property
    def many(self) -> bool:
        """Whether unnumbered pure acknowledgements are believed to be copies too."""
        return believed(self.data, self.data_copies)


def believed(data: int, data_copies: int) -> bool:
    """``Copies.many`` of a whole capture."""
    return data_copies > 0 and data_copies >= _MANY * data


def captured_twice(
    packets: Packets,
    sequence: SequenceSpace,
    direction: Int64,
    starts: Int64,
    buffer: Buffer | None,
    many: bool | None = None,
) -> Copies:
    """``buffer`` (optional) lets options be compared too. ``many``: what the whole capture says where these packets are a part of it."""
    copies = np.zeros(len(packets), np.bool_)
    if len(packets) < 2:
        return Copies(copies, 0, 0)
    data = sequence.occupies | ((packets.flags & SYN) != 0)
    again = np.flatnonzero(data & (sequence.end <= sequence.edge))
    _mark(copies, again, packets, starts, direction, buffer, unnumbered=True)
    silent = np.flatnonzero(~data & _no_news(packets, sequence))
    found = Copies(copies, int(np.count_nonzero(data)), int(np.count_nonzero(copies)))
    _mark(copies, silent, packets, starts, direction, buffer, unnumbered=found.many if many is None else many)
    return found


def _no_news(packets: Packets, sequence: SequenceSpace) -> Bool:
    """Packets without data whose acknowledgement does not go beyond the one before."""
    stale = np.zeros(len(packets), np.bool_)
    stale[1:] = sequence.acked[1:] <= sequence.acked[:-1]
    return stale


def _mark(
    copies: Bool,
    rows: Int64,
    packets: Packets,
    starts: Int64,
    direction: Int64,
    buffer: Buffer | None,
    *,
    unnumbered: bool,
) -> None:
    first = starts[:-1]
    for back in range(1, _LOOK_BACK + 1):
        rows = rows[rows - back >= first[direction[rows]]]
        if not rows.size:
            return
        same = _same_header(packets, rows, rows - back)
        candidates = rows[same]
        if candidates.size:
            found = candidates[_is_copy(packets, candidates, candidates - back, buffer, unnumbered)]
            copies[found] = True
            rows = rows[~copies[rows]]


def _same_header(packets: Packets, rows: Int64, earlier: Int64) -> Bool:
    same = packets.seq[rows] == packets.seq[earlier]
    same &= packets.ack[rows] == packets.ack[earlier]
    same &= packets.ip_id[rows] == packets.ip_id[earlier]
    same &= packets.payload_bytes[rows] == packets.payload_bytes[earlier]
    same &= packets.flags[rows] == packets.flags[earlier]
    same &= packets.window[rows] == packets.window[earlier]
    same &= packets.header_bytes[rows] == packets.header_bytes[earlier]
    return np.asarray(same)


def _is_copy(packets: Packets, rows: Int64, earlier: Int64, buffer: Buffer | None, unnumbered: bool) -> Bool:
    apart = np.abs(packets.captured_at[rows] - packets.captured_at[earlier])
    numbered = packets.ip_id[rows] > 0
    copy: Bool = numbered & (apart < COPY_NS)
    if unnumbered:
        copy |= ~numbered & (apart < UNNUMBERED_COPY_NS)
    if buffer is not None:
        copy &= _same_options(packets, rows, earlier, buffer)
    return copy


def _same_options(packets: Packets, rows: Int64, earlier: Int64, buffer: Buffer) -> Bool:
    """TCP options equal octet by octet: a retransmission or another acknowledgement carries a later time stamp, other SACK blocks."""
    one, size = option_lists(packets, rows, buffer)
    two, _ = option_lists(packets, earlier, buffer)
    beyond = np.arange(one.shape[1]) >= size[:, None]
    return np.asarray(((one == two) | beyond).all(axis=1))
