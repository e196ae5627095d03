"""Round-trip times as the capture point saw them: from data to its acknowledgement, in both directions."""

from __future__ import annotations

import numpy as np

from netdiag.wire.flows import Flows
from netdiag.wire.handshake import Handshake
from netdiag.wire.tables import NONE, Int64
from netdiag.wire.tcp_flags import ACK, RST

DELAYED_ACK_NS = 35_000_000
"""An acknowledgement that rides on data this late may have waited for the application (RFC 1122 section 4.2.3.2: up to 500 ms)."""


def half_loops(flows: Flows, opened: Handshake, late: Int64) -> Int64:
    """Of each direction: the least time from its data (or SYN) at the capture point to the acknowledgement there; NONE without samples.

    So element ``2c`` is capture point → server → capture point, ``2c + 1`` the client's half; their sum is the connection's round trip.
    Retransmitted ranges give no sample (Karn, RFC 6298 section 3), nor do acknowledgements that waited for the application's data. ``late``
    are the rows with octets from before the edge.
    """
    least = np.full(len(flows.starts) - 1, np.iinfo(np.int64).max)
    _handshake_samples(flows, opened, least)
    rows, sent, took_ns = samples(flows, late)
    if rows.size:
        prompt = (flows.packets.payload_bytes[rows] == 0) | (took_ns < DELAYED_ACK_NS)
        _take_least_of_runs(least, flows.stream[sent[prompt]], took_ns[prompt])
    return np.where(least == np.iinfo(np.int64).max, NONE, least)


def round_trips(halves: Int64, default_ns: int) -> Int64:
    """Of each connection: the least round trip by its ``half_loops``. Where only one half is known, at least ``default_ns``: next to one end
    of the path that half is next to nothing. NONE where neither is."""
    half = halves.reshape(-1, 2)
    known = (half != NONE).sum(axis=1)
    most = half.max(axis=1, initial=NONE)
    return np.select([known == 2, known == 1], [half.sum(axis=1), np.maximum(most, default_ns)], NONE)


def _take_least_of_runs(least: Int64, stream: Int64, took_ns: Int64) -> None:
    """The least of each direction; its samples mostly stand together."""
    if stream.size:
        first = np.flatnonzero(np.diff(stream, prepend=-1))
        np.minimum.at(least, stream[first], np.minimum.reduceat(took_ns, first))


def samples(flows: Flows, late: Int64) -> tuple[Int64, Int64, Int64]:
    """(acknowledging row, acknowledged row, time between) of every acknowledgement that fits exactly one segment sent once."""
    sequence, packets, peer = flows.sequence, flows.packets, flows.peer_row
    before = np.zeros(len(packets), np.int64)
    before[1:] = np.where(flows.stream[1:] == flows.stream[:-1], sequence.acked[:-1], 0)
    rows = np.flatnonzero(
        (sequence.acked > np.maximum(before, 0)) & (peer != NONE) & ((packets.flags & (ACK | RST)) == ACK)
    )
    if not rows.size:
        return rows, rows, rows
    sent = _sender_rows(flows, rows)
    found = sent != NONE
    rows, sent = rows[found], sent[found]
    again = np.zeros(len(packets) + 1, np.int64)
    again[1:][late] = 1
    again = np.cumsum(again)
    karn = again[peer[rows] + 1] == again[sent]
    took_ns = packets.captured_at[rows] - packets.captured_at[sent]
    good = karn & (took_ns >= 0)
    return rows[good], sent[good], took_ns[good]


def _sender_rows(flows: Flows, rows: Int64) -> Int64:
    """The peer's packet whose last octet each row acknowledges; NONE when the acknowledgement ends inside a segment or was not seen."""
    sequence = flows.sequence
    data = np.flatnonzero(sequence.occupies & (sequence.begin >= sequence.edge))
    out = np.full(len(rows), NONE, np.int64)
    if not data.size:
        return out
    span = max(0, int(sequence.end[data].max())) + 2
    keys = flows.stream[data] * span + sequence.end[data]
    wanted = (flows.stream[rows] ^ 1) * span + np.clip(sequence.acked[rows], 0, span - 1)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    hit = (keys[place] == wanted) & (data[place] <= flows.peer_row[rows])
    out[hit] = data[place[hit]]
    return out


def _handshake_samples(flows: Flows, opened: Handshake, least: Int64) -> None:
    """SYN to SYN-ACK, and SYN-ACK to ACK, where neither was sent twice."""
    at = flows.packets.captured_at
    once = (opened.syns == 1) & (opened.syn_ack_row != NONE) & (opened.syn_row != NONE)
    _take_least(least[0::2], once, at[opened.syn_ack_row] - at[opened.syn_row])
    once = (opened.syn_acks == 1) & (opened.syn_ack_row != NONE) & (opened.ack_row != NONE)
    _take_least(least[1::2], once, at[opened.ack_row] - at[opened.syn_ack_row])


def _take_least(least: Int64, valid: np.ndarray[tuple[int], np.dtype[np.bool_]], took_ns: Int64) -> None:
    good = valid & (took_ns >= 0)
    least[good] = np.minimum(least[good], took_ns[good])
