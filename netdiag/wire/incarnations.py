"""Where a pair of endpoints is used again: a SYN that cannot belong to the connection before it.

The witness is Wireshark's ``tcp.stream``: a SYN (without ACK) whose sequence number is not the initial one of the current connection
starts another. One with the same number does so only after a FIN or RST that ended an established connection (the same octets replayed);
after a refusal it is the same attempt made again, and one that is not later than the SYN before
it is a copy (a capture merged with itself).
"""

from __future__ import annotations

import numpy as np

from netdiag.wire.distinct import distinct
from netdiag.wire.tables import Bool, Int64, Packets
from netdiag.wire.tcp_flags import ACK, FIN, RST, SYN


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
    same = np.flatnonzero(again & same_way & ~other_isn)
    if same.size:
        later = packets.captured_at[rows[same]] > packets.captured_at[rows[same - 1]]
        starts[syn[same]] = later & _closed_between(packets, order, syn[same - 1], syn[same])
    bounds = np.append(np.flatnonzero(new), len(order))
    for group in distinct(pair[(again & ~same_way) | (~again & ~new[syn])]).tolist():
        first, last = np.searchsorted(pair, (group, group + 1)).tolist()
        _one_by_one(packets, order[: bounds[group]], int(bounds[group - 1]), syn[first:last], starts)
    return starts


def _closed_between(packets: Packets, order: Int64, begins: Int64, ends: Int64) -> Bool:
    """For each range of rows whether a connection was established and ended in it."""
    flags = packets.flags[order]

    def any_of(rows: Bool) -> Bool:
        count = np.append(0, np.cumsum(rows))
        return np.asarray(count[ends] > count[begins])

    closed = any_of((flags & (FIN | RST)) != 0)
    if not closed.any():
        return closed
    loaded, offers, acks = _signs(packets, order)
    return np.asarray(closed & (any_of(loaded) | (any_of(offers) & any_of(acks))))


def _signs(packets: Packets, rows: Int64) -> tuple[Bool, Bool, Bool]:
    """Which rows carry octets of a connection, which are SYN-ACKs, which may acknowledge one.

    Both ends had agreed where there are octets, or a SYN-ACK and an ACK for it. A SYN-ACK that was answered with RST was agreed by nobody,
    and some put a text into the RST with which they refuse (RFC 9293 section 3.5.3).
    """
    flags = packets.flags[rows]
    plain = (flags & (SYN | RST)) == 0
    return plain & (packets.payload_bytes[rows] > 0), (flags & (SYN | ACK)) == SYN | ACK, plain & ((flags & ACK) != 0)


def _one_by_one(packets: Packets, order: Int64, begin: int, syn: Int64, starts: Bool) -> None:
    """The rule applied in sequence to one pair (rows ``begin`` to the end of ``order``) whose first packet is no SYN, or whose ends both
    sent SYNs."""
    rows = order[begin:]
    flags, direction = packets.flags[rows], packets.direction[rows]
    own = [np.flatnonzero(direction == one) for one in (0, 1)]
    acks = [np.flatnonzero((direction == one) & ((flags & ACK) != 0)) for one in (0, 1)]
    closing = np.flatnonzero(flags & (FIN | RST))
    loaded, offers, answers = map(np.flatnonzero, _signs(packets, rows))
    first = 0
    last_at: int | None = None
    for place in (syn - begin).tolist():
        before_at, last_at = last_at, int(packets.captured_at[rows[place]])
        if place == first:
            continue
        side = int(direction[place])
        isn = _initial_sequence(packets, rows, _within(own[side], first, place), _within(acks[1 - side], first, place))
        if isn is None:
            continue
        later = before_at is not None and last_at > before_at
        agreed = _is_in(loaded, first, place) or (_is_in(offers, first, place) and _is_in(answers, first, place))
        replayed = later and agreed and _is_in(closing, first, place)
        if isn != int(packets.seq[rows[place]]) or replayed:
            starts[begin + place] = True
            first = place


def _within(places: Int64, first: int, end: int) -> int | None:
    """The first of the ascending places that lies in ``first:end``."""
    at = int(np.searchsorted(places, first))
    return int(places[at]) if at < len(places) and places[at] < end else None


def _is_in(places: Int64, first: int, end: int) -> bool:
    return _within(places, first, end) is not None


def _initial_sequence(packets: Packets, rows: Int64, own: int | None, ack: int | None) -> int | None:
    """What the connection so far says of a direction's initial sequence number: its own first packet, or the peer's first ACK."""
    if own is not None and (ack is None or own < ack):
        seq = int(packets.seq[rows[own]])
        return seq if packets.flags[rows[own]] & SYN else (seq - 1) % 2**32
    return None if ack is None else (int(packets.ack[rows[ack]]) - 1) % 2**32
