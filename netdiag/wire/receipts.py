"""When the server's host had what the client sent, told by its first acknowledgement: from then on it was the server's turn."""

from __future__ import annotations

import numpy as np

from netdiag.plain import plain
from netdiag.wire.flows import Flows
from netdiag.wire.sequence import UNKNOWN
from netdiag.wire.tables import NONE, Bool, Int32, Int64, Table
from netdiag.wire.tcp_flags import FIN, RST, SYN

CLIENT = 0
_PAUSE_NS = 1_000_000
"""What is followed by more so soon is in the middle of something."""


@plain(frozen=True, slots=True, kw_only=True)
class Receipts(Table):
    """One row per burst of the client that was acknowledged, by connection and time."""

    connection: Int32
    sent_at: Int64
    """Of the burst's last segment."""
    acked_at: Int64
    bare: Bool
    """The acknowledgement came alone, not with the server's data."""

    @classmethod
    def none(cls) -> Receipts:
        """No rows."""
        empty = np.empty(0, np.int64)
        return cls(connection=empty.astype(np.int32), sent_at=empty, acked_at=empty, bare=empty.astype(np.bool_))

    def of(self, connection: int) -> Receipts:
        """Those of one connection."""
        wanted = np.array((connection, connection + 1), self.connection.dtype)
        low, high = np.searchsorted(self.connection, wanted).tolist()
        return self.take(slice(low, high))


def receipts(flows: Flows) -> Receipts:
    """Of all connections."""
    packets, sequence = flows.packets, flows.sequence
    rows = _last_of_bursts(flows)
    if not rows.size:
        return Receipts.none()
    peer, acked = flows.stream[rows] ^ 1, np.where(sequence.acked == UNKNOWN, -1, sequence.acked)
    span = int(max(acked.max(initial=0), sequence.end[rows].max())) + 2
    highest = np.maximum.accumulate(flows.stream * span + np.clip(acked, 0, None))
    found = np.searchsorted(highest, peer * span + sequence.end[rows], "left")
    there = found < flows.starts[peer + 1]
    rows, found = rows[there], found[there]
    after = (flows.peer_row[found] != NONE) & (flows.peer_row[found] >= rows)
    rows, found = rows[after], found[after]
    return Receipts(
        connection=flows.connection[rows],
        sent_at=packets.captured_at[rows],
        acked_at=packets.captured_at[found],
        bare=(packets.payload_bytes[found] == 0) & ((packets.flags[found] & (SYN | FIN | RST)) == 0),
    )


def _last_of_bursts(flows: Flows) -> Int64:
    """New data of clients after which they paused."""
    packets, sequence = flows.packets, flows.sequence
    data = sequence.occupies & (packets.payload_bytes > 0) & (flows.side == CLIENT) & (sequence.begin >= sequence.edge)
    rows = np.flatnonzero(data)
    if not rows.size:
        return rows
    last = np.ones(len(rows), np.bool_)
    at, stream = packets.captured_at[rows], flows.stream[rows]
    last[:-1] = (stream[1:] != stream[:-1]) | (at[1:] - at[:-1] >= _PAUSE_NS)
    return rows[last]
