"""Where a pair of endpoints is used again: a SYN that cannot belong to the connection before it.

The witness is Wireshark's ``tcp.stream``: a SYN (without ACK) whose sequence number is not the initial one of the current connection
starts another. One with the same number does so only after a FIN or RST that ended an established connection (the same octets replayed);
after a refusal it is the same attempt made again.
"""

from __future__ import annotations

import numpy as np

from netdiag.wire.tables import Bool, Int64, Packets

FIN, SYN, RST, ACK = 1, 2, 4, 16


def incarnation_starts(packets: Packets, order: Int64, new: Bool) -> Bool:
    """In ``order`` (stable, by endpoint pair; ``new`` marks the first row of each pair): rows that start a further connection."""
    starts = np.zeros(len(order), np.bool_)
    syn = np.flatnonzero((packets.flags & (SYN | ACK))[order] == SYN)
    if not syn.size:
        return starts
    pair = np.cumsum(new, dtype=np.int32)[syn]
    rows = order[syn]
    seq, direction = packets.seq[rows], packets.direction[rows]
    again = np.zeros(syn.size, np.bool_)
    again[1:] = pair[1:] == pair[:-1]
    same_way = np.zeros(syn.size, np.bool_)
    same_way[1:] = direction[1:] == direction[:-1]
    other_isn = np.zeros(syn.size, np.bool_)
    other_isn[1:] = seq[1:] != seq[:-1]
    starts[syn[again & same_way & other_isn]] = True
    for place in np.flatnonzero(again & same_way & ~other_isn).tolist():
        starts[syn[place]] = _closed_between(packets, order, int(syn[place - 1]), int(syn[place]))
    for group in np.unique(pair[(again & ~same_way) | (~again & ~new[syn])]).tolist():
        _one_by_one(packets, order, new, syn[pair == group], starts)
    return starts


def _closed_between(packets: Packets, order: Int64, begin: int, end: int) -> bool:
    """Whether a connection was established and ended between two rows."""
    flags = packets.flags[order[begin:end]]
    established = bool(((flags & (SYN | ACK)) == SYN | ACK).any() or packets.payload_bytes[order[begin:end]].any())
    return established and bool((flags & (FIN | RST)).any())


def _one_by_one(packets: Packets, order: Int64, new: Bool, syn: Int64, starts: Bool) -> None:
    """The rule applied in sequence to one pair whose first packet is no SYN, or whose ends both sent SYNs."""
    first = int(np.flatnonzero(new[: int(syn[0]) + 1])[-1])
    for row in syn.tolist():
        if row == first:
            continue
        isn = _initial_sequence(packets, order[first:row], int(packets.direction[order[row]]))
        differs = isn is not None and isn != int(packets.seq[order[row]])
        starts[row] = differs or (isn is not None and _closed_between(packets, order, first, row))
        if starts[row]:
            first = row


def _initial_sequence(packets: Packets, rows: Int64, direction: int) -> int | None:
    """What the connection so far says of this direction's initial sequence number: its own first packet, or the peer's first ACK."""
    own = packets.direction[rows] == direction
    acks = ~own & ((packets.flags[rows] & ACK) != 0)
    candidates = np.flatnonzero(own | acks)
    if not candidates.size:
        return None
    row = rows[int(candidates[0])]
    if int(packets.direction[row]) != direction:
        return (int(packets.ack[row]) - 1) % 2**32
    return int(packets.seq[row]) if packets.flags[row] & SYN else (int(packets.seq[row]) - 1) % 2**32
