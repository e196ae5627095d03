"""Packets to connections: which packets belong together, which end is the client, and one contiguous slice per direction.

A connection is one incarnation of a pair of endpoints; pairs are reused (in 43 % of the connections of a busy load test), so a SYN with a
new initial sequence number starts another one, exactly as Wireshark's ``tcp.stream`` counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from netdiag.wire.by_pair import by_pair
from netdiag.wire.client_side import client_directions
from netdiag.wire.flows import Flows
from netdiag.wire.incarnations import incarnation_starts
from netdiag.wire.padding import without_padding
from netdiag.wire.tables import NONE, Bool, Buffer, Int64, Packets, UInt8
from netdiag.wire.verify import told_apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """Which packets belong to which connection, before anything is moved."""

    packets: Packets
    """In file order."""
    buffer: Buffer
    order: Int64
    """Rows by connection, in file order inside."""
    starts: Int64
    """``[n + 1]``: connection ``c`` is ``order[starts[c]:starts[c + 1]]``."""
    client: UInt8
    """The ``direction`` in which the client of each connection sends."""
    known_by: UInt8
    last_at: int
    """Latest time of the whole capture."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    def flows(self, first: int, last: int, *, copied: bool | None = None) -> Flows:
        """Connections ``first:last``, numbered from 0; ``copied`` as in ``Flows``."""
        begin, end = int(self.starts[first]), int(self.starts[last])
        if begin == end:
            return _nothing(self.packets.take(slice(0, 0)), self.buffer)
        part = _by_side(
            self.packets,
            self.order[begin:end],
            self.starts[first : last + 1] - begin,
            self.client[first:last],
            self.known_by[first:last],
            self.buffer,
        )
        return replace(part, last_at=self.last_at, copied=copied)


def group(packets: Packets, buffer: Buffer, last_at: int | None = None) -> Grouped:
    """The packets of a capture (in file order) by connection, and who is the client. ``last_at``: as ``Grouped``, where these are not
    all of its packets."""
    if last_at is None:
        last_at = int(packets.captured_at.max(initial=NONE))
    if not len(packets):
        nothing, side = np.empty(0, np.int64), np.empty(0, np.uint8)
        return Grouped(
            packets=packets,
            buffer=buffer,
            order=nothing,
            starts=np.zeros(1, np.int64),
            client=side,
            known_by=side,
            last_at=last_at,
        )
    by_pair, new = _grouped(packets, buffer)
    by_connection, starts = _in_order_of_appearance(by_pair, np.flatnonzero(new))
    client, known_by = client_directions(packets, by_connection, starts, buffer)
    return Grouped(
        packets=packets,
        buffer=buffer,
        order=by_connection,
        starts=starts,
        client=client,
        known_by=known_by,
        last_at=last_at,
    )


def track(packets: Packets, buffer: Buffer) -> Flows:
    """Group the packets of a capture (in file order) into connections and decide who the client is."""
    grouped = group(packets, buffer)
    return grouped.flows(0, len(grouped))


def _grouped(packets: Packets, buffer: Buffer) -> tuple[Int64, Bool]:
    """A stable order by connection, and where in it a new connection begins."""
    order, new = by_pair(packets.low, packets.high)
    keys = told_apart(packets, order, new, buffer)
    if keys is not None:
        order, new = by_pair(*keys)
    new |= incarnation_starts(packets, order, new)
    return order, new


def _in_order_of_appearance(order: Int64, begins: Int64) -> tuple[Int64, Int64]:
    """Connections renumbered by their first packet: the order rearranged block by block, and the start of each connection in it."""
    counts = np.diff(np.append(begins, len(order)))
    rank = np.argsort(order[begins], kind="stable")
    starts = np.concatenate(([0], np.cumsum(counts[rank])))
    moved_to = np.empty_like(begins)
    moved_to[rank] = starts[:-1]
    arranged = np.empty_like(order)
    arranged[np.arange(len(order)) + np.repeat(moved_to - begins, counts)] = order
    return arranged, starts


def _by_side(packets: Packets, order: Int64, starts: Int64, client: UInt8, known_by: UInt8, buffer: Buffer) -> Flows:
    """Split every connection's rows into the client's, then the server's, each in file order, without sorting."""
    counts = np.diff(starts)
    connection = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    from_server = packets.direction[order] != np.repeat(client, counts)
    servers_before = np.concatenate(([0], np.cumsum(from_server)))
    rows, peer_row, split = _split(order, starts, from_server, servers_before)
    bounds = np.empty(2 * len(counts) + 1, np.int64)
    bounds[0::2], bounds[1::2] = starts, split
    side = np.repeat(np.tile(np.array([0, 1], np.uint8), len(counts)), np.diff(bounds))
    stream = connection.astype(np.int64) * 2 + side
    return Flows(
        packets=without_padding(packets.take(rows), stream, buffer),
        buffer=buffer,
        connection=connection,
        side=side,
        starts=bounds,
        client_known_by=known_by,
        peer_row=peer_row,
    )


def _split(order: Int64, starts: Int64, from_server: Bool, servers_before: Int64) -> tuple[Int64, Int64, Int64]:
    """``order`` by side, the ``peer_row`` of each (as ``Flows``), and where the server's rows of each connection begin.

    The rows of one sender stay in their order, so each only moves by as many places as the other sender's rows that it passes.
    """
    first = servers_before[starts[:-1]]
    servers = servers_before[starts[1:]] - first
    split = starts[1:] - servers
    rows, peer_row = np.empty_like(order), np.empty_like(order)

    at = np.flatnonzero(~from_server)
    clients = split - starts[:-1]
    behind = np.repeat(first, clients)
    target = np.arange(len(at)) + behind
    rows[target] = order[at]
    seen = servers_before[at]
    peer_row[target] = np.where(seen > behind, seen + np.repeat(split - first - 1, clients), NONE)

    at = np.flatnonzero(from_server)
    number = np.arange(len(at))
    target = number + np.repeat(split - first, servers)
    rows[target] = order[at]
    peer = at - number - 1 + np.repeat(first, servers)
    peer_row[target] = np.where(peer >= np.repeat(starts[:-1], servers), peer, NONE)
    return rows, peer_row, split


def _nothing(packets: Packets, buffer: Buffer) -> Flows:
    return Flows(
        packets=packets,
        buffer=buffer,
        connection=np.empty(0, np.int32),
        side=np.empty(0, np.uint8),
        starts=np.zeros(1, np.int64),
        client_known_by=np.empty(0, np.uint8),
        peer_row=np.empty(0, np.int64),
    )
