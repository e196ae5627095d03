"""The three packets that open a connection, and how often they were tried (RFC 9293 section 3.5)."""

from __future__ import annotations

import numpy as np

from netdiag.plain import plain
from netdiag.wire.flows import Flows
from netdiag.wire.tables import NONE, Bool, Int64
from netdiag.wire.tcp_flags import ACK, FIN, RST, SYN


@plain(frozen=True, slots=True, kw_only=True)
class Handshake:
    """Per connection; rows of ``Flows.packets``, NONE where there is none."""

    syn_row: Int64
    """The first SYN."""
    answered_syn_row: Int64
    """The last SYN before the SYN-ACK (the first one when there is no SYN-ACK)."""
    syn_ack_row: Int64
    ack_row: Int64
    """The client's first packet that acknowledges the SYN-ACK. Where the server sent payload, so that the connection was open to it, the
    client's first acknowledgement whatever its number says (a firewall that rewrites numbers, a capture made by hand)."""
    syns: Int64
    """How many SYNs the client sent, captured copies not counted."""
    syn_acks: Int64
    rtt_ns: Int64
    """The whole round trip wherever the capture was taken: answered SYN to SYN-ACK, and last SYN-ACK to ACK. NONE unless all three
    were captured in order."""


def handshake(flows: Flows, copies: Bool) -> Handshake:
    """Of every connection. ``copies`` marks rows that are captured duplicates."""
    flags = flows.packets.flags & (SYN | ACK | FIN | RST)
    number, at = flows.packets.number, flows.packets.captured_at
    of_client = flows.side == 0
    syns = np.flatnonzero(((flags & (SYN | ACK | RST)) == SYN) & of_client & ~copies)
    syn_acks = np.flatnonzero((flags == SYN | ACK) & ~of_client & ~copies)
    count = flows.count
    syn_row = first_of(flows, syns)
    syn_ack_row = first_of(flows, syn_acks)
    before = syns[number[syns] < _or_last(number, syn_ack_row)[flows.connection[syns]]]
    answered = last_of(flows, before)
    answered = np.where((answered == NONE) | (syn_ack_row == NONE), syn_row, answered)
    acks = np.flatnonzero(((flags & (SYN | ACK | RST)) == ACK) & of_client & ~copies)
    acks = acks[number[acks] > _or_last(number, syn_ack_row)[flows.connection[acks]]]
    acks = _believed(flows, acks)
    ack_row = first_of(flows, acks)
    before = syn_acks[number[syn_acks] < _or_last(number, ack_row)[flows.connection[syn_acks]]]
    accepted = last_of(flows, before)
    whole = (answered != NONE) & (syn_ack_row != NONE) & (ack_row != NONE) & (accepted != NONE)
    rtt_ns = np.where(whole, at[syn_ack_row] - at[answered] + at[ack_row] - at[accepted], NONE)
    return Handshake(
        syn_row=syn_row,
        answered_syn_row=answered,
        syn_ack_row=syn_ack_row,
        ack_row=ack_row,
        syns=np.bincount(flows.connection[syns], minlength=count),
        syn_acks=np.bincount(flows.connection[syn_acks], minlength=count),
        rtt_ns=np.where(rtt_ns >= 0, rtt_ns, NONE),
    )


def _believed(flows: Flows, acks: Int64) -> Int64:
    """Those that acknowledge the SYN-ACK, and all of them in connections whose server sent payload."""
    good = flows.sequence.acked[acks] >= 0
    if good.all():
        return acks
    speaks = np.zeros(flows.count, np.bool_)
    speaks[flows.connection[(flows.side == 1) & (flows.packets.payload_bytes > 0)]] = True
    return acks[good | speaks[flows.connection[acks]]]


def first_of(flows: Flows, rows: Int64) -> Int64:
    """The first of the (ascending, one-sided) rows in each connection; NONE where there is none."""
    out = np.full(flows.count, NONE, np.int64)
    out[flows.connection[rows[::-1]]] = rows[::-1]
    return out


def last_of(flows: Flows, rows: Int64) -> Int64:
    """The last of the (ascending, one-sided) rows in each connection; NONE where there is none."""
    out = np.full(flows.count, NONE, np.int64)
    out[flows.connection[rows]] = rows
    return out


def _or_last(number: Int64, row: Int64) -> Int64:
    """Frame numbers of rows; above every number where the row is NONE."""
    return np.where(row == NONE, np.iinfo(np.int64).max, number[row])
