"""TCP options of the SYNs (RFC 9293 section 3.2, RFC 7323, RFC 2018), all at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from netdiag.wire.octets import Octets
from netdiag.wire.tables import NONE, Buffer, Int64, Packets

END, NO_OPERATION, MSS, WINDOW_SCALE, SACK_PERMITTED = 0, 1, 2, 3, 4
_MAX_OPTION_BYTES = 40
_MAX_SHIFT = 14
"""RFC 7323 section 2.3: a larger shift count is used as 14."""


@dataclass(frozen=True, slots=True)
class SynOptions:
    """Of each given row; NONE where the option is absent. ``sack`` is 1 where SACK is permitted, else 0."""

    mss_bytes: Int64
    window_scale: Int64
    sack: Int64


def syn_options(packets: Packets, rows: Int64, buffer: Buffer) -> SynOptions:
    """Walk the option lists of all rows in lock step; a malformed list ends where it stops making sense."""
    size = packets.header_bytes[rows].astype(np.int64) - 20
    begin = packets.payload_offset[rows] - size
    lists = Octets(buffer).rows(begin, np.dtype(f"V{_MAX_OPTION_BYTES}")).view(np.uint8).reshape(-1, _MAX_OPTION_BYTES)
    lists = np.concatenate((lists, np.zeros((len(rows), 4), np.uint8)), axis=1)
    mss_bytes = np.full(len(rows), NONE, np.int64)
    window_scale = np.full(len(rows), NONE, np.int64)
    sack = np.zeros(len(rows), np.int64)
    at = np.zeros(len(rows), np.int64)
    alive = np.flatnonzero(size > 0)
    while alive.size:
        place = at[alive]
        kind = lists[alive, place]
        length = np.where(kind == NO_OPERATION, 1, lists[alive, place + 1]).astype(np.int64)
        good = (kind != END) & ((kind == NO_OPERATION) | (length >= 2)) & (place + length <= size[alive])
        alive, place, kind, length = alive[good], place[good], kind[good], length[good]
        if (found := (kind == MSS) & (length == 4)).any():
            high, low = lists[alive[found], place[found] + 2], lists[alive[found], place[found] + 3]
            mss_bytes[alive[found]] = high.astype(np.int64) << 8 | low
        if (found := (kind == WINDOW_SCALE) & (length == 3)).any():
            window_scale[alive[found]] = np.minimum(lists[alive[found], place[found] + 2], _MAX_SHIFT)
        sack[alive[(kind == SACK_PERMITTED) & (length == 2)]] = 1
        at[alive] = place + length
        alive = alive[at[alive] < size[alive]]
    return SynOptions(mss_bytes, window_scale, sack)
