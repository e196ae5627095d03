"""TCP options (RFC 9293 section 3.2), read for many packets at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from netdiag.plain import plain
from netdiag.wire.octets import Octets
from netdiag.wire.tables import NONE, Bool, Buffer, Int64, Packets, UInt8

END, NO_OPERATION, MSS, WINDOW_SCALE, SACK_PERMITTED, SACK, TIMESTAMPS = 0, 1, 2, 3, 4, 5, 8
BASE_HEADER_BYTES = 20
_IPV4_HEADER_BYTES, _IPV6_HEADER_BYTES = 20, 40
_MAX_OPTION_BYTES = 40
_ROOM = 8
"""Zero octets after each list, so that fields may be read before lengths are judged."""
_MAX_SHIFT = 14
"""RFC 7323 section 2.3: a larger shift count is used as 14."""


@dataclass(frozen=True, slots=True)
class SynOptions:
    """Of each given row; NONE where the option is absent. ``sack`` is 1 where SACK is permitted (RFC 2018), else 0."""

    mss_bytes: Int64
    window_scale: Int64
    sack: Int64


@plain(frozen=True, slots=True)
class SackBlocks:
    """The first two blocks of each given row (RFC 2018 section 3), as 32-bit sequence numbers; NONE where there is none."""

    first_left: Int64
    first_right: Int64
    second_left: Int64
    second_right: Int64


def shows_tcp_header(packets: Packets, rows: Int64) -> Bool:
    """Which rows have their TCP header just before the payload; later IP fragments have none."""
    network_bytes = (
        packets.payload_offset[rows] - packets.header_bytes[rows].astype(np.int64) - packets.network_offset[rows]
    )
    return np.asarray(network_bytes >= np.where(packets.ip_id[rows] == NONE, _IPV6_HEADER_BYTES, _IPV4_HEADER_BYTES))


def option_lists(packets: Packets, rows: Int64, buffer: Buffer) -> tuple[UInt8, Int64]:
    """The options of each row, padded with zero octets to one width, and their length."""
    size = np.clip(packets.header_bytes[rows].astype(np.int64) - BASE_HEADER_BYTES, 0, _MAX_OPTION_BYTES)
    begin = packets.payload_offset[rows] - size
    lists = Octets(buffer).rows(begin, np.dtype(f"V{_MAX_OPTION_BYTES}")).view(np.uint8).reshape(-1, _MAX_OPTION_BYTES)
    return np.concatenate((lists, np.zeros((len(rows), _ROOM), np.uint8)), axis=1), size


def syn_options(packets: Packets, rows: Int64, buffer: Buffer) -> SynOptions:
    """MSS, window scale and SACK-permitted of SYNs."""
    lists, size = option_lists(packets, rows, buffer)
    mss_bytes = np.full(len(rows), NONE, np.int64)
    window_scale = np.full(len(rows), NONE, np.int64)
    sack = np.zeros(len(rows), np.int64)
    for at, place, kind, length in _walk(lists, size):
        if (found := (kind == MSS) & (length == 4)).any():
            high, low = lists[at[found], place[found] + 2], lists[at[found], place[found] + 3]
            mss_bytes[at[found]] = high.astype(np.int64) << 8 | low
        if (found := (kind == WINDOW_SCALE) & (length == 3)).any():
            window_scale[at[found]] = np.minimum(lists[at[found], place[found] + 2], _MAX_SHIFT)
        sack[at[(kind == SACK_PERMITTED) & (length == 2)]] = 1
    return SynOptions(mss_bytes, window_scale, sack)


def sack_blocks(packets: Packets, rows: Int64, buffer: Buffer) -> SackBlocks:
    """The blocks that tell a duplicate SACK (RFC 2883)."""
    lists, size = option_lists(packets, rows, buffer)
    columns = [np.full(len(rows), NONE, np.int64) for _ in range(4)]
    for at, place, kind, length in _walk(lists, size):
        for number in range(4):
            chosen = (kind == SACK) & (length >= 2 + 8 * (number // 2 + 1))
            columns[number][at[chosen]] = _word(lists, at[chosen], place[chosen] + 2 + 4 * number)
    return SackBlocks(*columns)


def time_stamps(packets: Packets, rows: Int64, buffer: Buffer) -> Int64:
    """TSval of each row (RFC 7323 section 3.2): the sender's clock, 32 bits; NONE without the option."""
    lists, size = option_lists(packets, rows, buffer)
    values = np.full(len(rows), NONE, np.int64)
    for at, place, kind, length in _walk(lists, size):
        found = (kind == TIMESTAMPS) & (length == 10)
        values[at[found]] = _word(lists, at[found], place[found] + 2)
    return values


def _word(lists: UInt8, rows: Int64, place: Int64) -> Int64:
    octets = [lists[rows, np.minimum(place + i, lists.shape[1] - 1)].astype(np.int64) for i in range(4)]
    return np.asarray(octets[0] << 24 | octets[1] << 16 | octets[2] << 8 | octets[3])


def _walk(lists: UInt8, size: Int64) -> Iterator[tuple[Int64, Int64, UInt8, Int64]]:
    """All lists in lock step: (rows still walked, place, kind and length of their next option). A malformed list ends where it stops
    making sense."""
    at = np.zeros(len(lists), np.int64)
    alive = np.flatnonzero(size > 0)
    while alive.size:
        place = at[alive]
        kind = lists[alive, place]
        length = np.where(kind == NO_OPERATION, 1, lists[alive, place + 1]).astype(np.int64)
        good = (kind != END) & ((kind == NO_OPERATION) | (length >= 2)) & (place + length <= size[alive])
        alive, place, kind, length = alive[good], place[good], kind[good], length[good]
        yield alive, place, kind, length
        at[alive] = place + length
        alive = alive[at[alive] < size[alive]]
