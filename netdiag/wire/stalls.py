"""Times in which a direction was held up by the network or by a window."""

from __future__ import annotations

from enum import IntEnum
from typing import Self

import numpy as np

from netdiag.plain import plain
from netdiag.wire.intervals import union
from netdiag.wire.tables import Int32, Int64, Table, UInt8


class StallKind(IntEnum):
    """Why octets of a direction waited."""

    LOSS = 0
    """Octets had arrived but those before them had not; the hole was filled by a retransmission."""
    REORDERING = 1
    """As loss, but the hole was filled sooner than a retransmission could."""
    ZERO_WINDOW = 2
    """``direction`` announced a window of 0: its receiver did not read. (What waited is the other direction's data.)"""
    FULL_WINDOW = 3
    """``direction`` had filled its peer's window."""
    UNSEEN_LOSS = 4
    """By the sender's packet count, data was lost before the capture point and came back after silence, looking like new. The
    interval begins with the direction's packet before, so the loss cost at most this."""
    LOSS_BEYOND = 5
    """Octets that the capture saw were lost on their way from here: from their first transmission to the last one that was needed. The
    receiver got them as much later."""


@plain(frozen=True, slots=True, kw_only=True)
class Stalls(Table):
    """One row per interval, by (connection, direction, start). Intervals of one kind and direction do not overlap."""

    connection: Int32
    direction: UInt8
    kind: UInt8
    """A ``StallKind``."""
    started_at: Int64
    ended_at: Int64
    """When it was over; the connection's last packet if it never was."""
    first_packet: Int64
    """The packet that showed it."""
    last_packet: Int64
    """The packet that ended it; NONE if none did."""

    @classmethod
    def none(cls) -> Self:
        """No rows."""
        empty = np.empty(0, np.int64)
        return cls(
            connection=empty.astype(np.int32),
            direction=empty.astype(np.uint8),
            kind=empty.astype(np.uint8),
            started_at=empty,
            ended_at=empty,
            first_packet=empty,
            last_packet=empty,
        )

    @classmethod
    def of(
        cls,
        *,
        connection: Int32,
        direction: UInt8,
        kind: StallKind,
        started_at: Int64,
        ended_at: Int64,
        first_packet: Int64,
        last_packet: Int64,
        stream: Int64,
    ) -> Self:
        """Intervals of one kind, overlapping ones of a direction (``stream``) merged, so that durations may be added."""
        merged = union(stream, started_at, ended_at)
        first, last = merged[:, 0], merged[:, 1]
        return cls(
            connection=connection[first],
            direction=direction[first],
            kind=np.full(len(first), kind, np.uint8),
            started_at=started_at[first],
            ended_at=ended_at[last],
            first_packet=first_packet[first],
            last_packet=last_packet[last],
        )
