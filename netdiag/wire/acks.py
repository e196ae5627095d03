"""Duplicate acknowledgements and keep-alive probes without payload, counted as Wireshark counts them."""

from __future__ import annotations

import numpy as np

from netdiag.wire.flows import Flows
from netdiag.wire.tables import NONE, Bool, Int64
from netdiag.wire.tcp_flags import ACK, FIN, RST, SYN

NOT_DATA = SYN | FIN | RST


def keep_alives(flows: Flows) -> Bool:
    """RFC 9293 section 3.8.4: at most one octet, one before the edge, and no SYN, FIN or RST.

    One octet that the peer has not acknowledged is a retransmission, unless its window is closed: then it probes the window.
    """
    sequence, packets = flows.sequence, flows.packets
    sent = flows.starts[:-1][flows.stream] < np.arange(len(packets))
    probes: Bool = sent & (packets.payload_bytes <= 1) & (sequence.begin == sequence.edge - 1)
    probes &= (packets.flags & NOT_DATA) == 0
    rows = np.flatnonzero(probes & (packets.payload_bytes == 1))
    peer = flows.peer_row[rows]
    idle = (peer == NONE) | (sequence.acked[peer] >= sequence.end[rows]) | (packets.window[peer] == 0)
    probes[rows[~idle]] = False
    return probes


def duplicate_acks(flows: Flows, copies: Bool, probes: Bool) -> Bool:
    """RFC 5681 section 2: no data, nothing new acknowledged, window unchanged (and open), while data is outstanding or asked for again.

    Answers to keep-alive probes (``probes``) and captured copies are not duplicates.
    """
    sequence, packets = flows.sequence, flows.packets
    out = np.zeros(len(packets), np.bool_)
    if len(packets) < 2:
        return out
    bare = (packets.payload_bytes == 0) & ((packets.flags & (NOT_DATA | ACK)) == ACK) & (packets.window != 0)
    same = bare[1:] & (packets.ack[1:] == packets.ack[:-1]) & (packets.window[1:] == packets.window[:-1])
    same &= flows.stream[1:] == flows.stream[:-1]
    at_edge = (sequence.begin[1:] == sequence.edge[1:]) | ((sequence.begin[1:] == sequence.begin[:-1]) & bare[:-1])
    out[1:] = same & at_edge & ~probes[1:]
    out &= ~copies
    rows = np.flatnonzero(out)
    peer = flows.peer_row[rows]
    out[rows[(peer != NONE) & probes[peer]]] = False
    return out


def runs(flows: Flows, duplicates: Bool) -> Int64:
    """Of each row: how many duplicates its sender has sent since its acknowledgement number last moved."""
    ack = flows.packets.ack
    moved = np.ones(len(ack), np.bool_)
    moved[1:] = (ack[1:] != ack[:-1]) | (flows.stream[1:] != flows.stream[:-1])
    total = np.cumsum(duplicates)
    since = np.maximum.accumulate(np.where(moved, np.arange(len(ack)), 0))
    return total - total[since]
