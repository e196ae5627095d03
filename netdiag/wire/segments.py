"""Packets to segments: every payload's place in its stream, what it is to the stream, when it was seen and when it became usable."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from netdiag.wire.flows import Flows
from netdiag.wire.sequence import running_edge
from netdiag.wire.stream_order import in_stream_order, streams_of
from netdiag.wire.tables import NONE, Bool, Int64, SegmentKind, Segments
from netdiag.wire.transmissions import transmissions


def segment(flows: Flows) -> Segments:
    """The payload segments of all connections, sorted by (connection, side, file order).

    A late packet that brings two or more separate ranges of new octets has one row for each, so that a row's new octets are always
    ``new_offset`` to its end.
    """
    rows = np.flatnonzero(flows.sequence.occupies & (flows.packets.payload_bytes > 0))
    segments = _with_late_octets(_plain(flows, rows), rows, flows)
    return replace(segments, deliverable_at=_deliverable_at(segments, flows))


def _plain(flows: Flows, rows: Int64) -> Segments:
    """One row per packet, new octets beyond the edge only."""
    packets, sequence = flows.packets, flows.sequence
    begin, edge = sequence.begin[rows], sequence.edge[rows]
    length = packets.payload_bytes[rows].astype(np.int64)
    seen_at = packets.captured_at[rows]
    return Segments(
        connection=flows.connection[rows],
        direction=flows.side[rows],
        packet=packets.number[rows],
        stream_offset=begin,
        length=length,
        captured_bytes=packets.captured_payload_bytes[rows].astype(np.int64),
        payload_offset=packets.payload_offset[rows],
        seen_at=seen_at,
        deliverable_at=seen_at,
        kind=_kinds(flows, rows),
        new_offset=np.minimum(np.maximum(begin, edge), begin + length),
    )


def _kinds(flows: Flows, rows: Int64) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    kinds = np.full(len(flows.packets), SegmentKind.NEW, np.uint8)
    found = transmissions(flows).resent
    kinds[found.rows] = found.kinds
    return kinds[rows]


def _with_late_octets(segments: Segments, rows: Int64, flows: Flows) -> Segments:
    """Account for the octets that packets from before the edge brought into holes."""
    ranges = transmissions(flows).fills.ranges
    if not ranges:
        return segments
    late = np.array(sorted(ranges), np.int64)
    places = np.searchsorted(rows, late)
    new_offset = segments.new_offset.copy()
    pieces: list[tuple[int, int, int, int]] = []
    for row, place in zip(late.tolist(), places.tolist(), strict=True):
        if place >= len(rows) or rows[place] != row:
            continue  # a FIN without payload
        begin = int(segments.stream_offset[place])
        end = begin + int(segments.length[place])
        new = [(low, min(high, end)) for low, high in ranges[row] if low < end]
        if len(new) == 1 and new[0][1] == end:
            new_offset[place] = new[0][0]
        elif new:
            pieces += _cut(place, begin, end, new)
    segments = replace(segments, new_offset=new_offset)
    return _split(segments, pieces) if pieces else segments


def _cut(place: int, begin: int, end: int, new: list[tuple[int, int]]) -> list[tuple[int, int, int, int]]:
    """``(row, begin, end, new offset)`` of the parts of one segment, each with new octets at its end (or none at all)."""
    parts, at = [], begin
    for low, high in new:
        parts.append((place, at, high, low))
        at = high
    if at < end:
        parts.append((place, at, end, end))
    return parts


def _split(segments: Segments, pieces: list[tuple[int, int, int, int]]) -> Segments:
    cut = np.array(pieces, np.int64)
    keep = np.ones(len(segments), np.bool_)
    keep[cut[:, 0]] = False
    parts = segments.take(cut[:, 0])
    ahead = cut[:, 1] - parts.stream_offset
    length = cut[:, 2] - cut[:, 1]
    parts = replace(
        parts,
        stream_offset=cut[:, 1],
        length=length,
        captured_bytes=np.clip(parts.captured_bytes - ahead, 0, length),
        payload_offset=parts.payload_offset + ahead,
        new_offset=cut[:, 3],
    )
    whole = Segments.concat([segments.take(keep), parts])
    order = np.argsort(np.concatenate((np.flatnonzero(keep), cut[:, 0])), kind="stable")
    return whole.take(order)


def _deliverable_at(segments: Segments, flows: Flows) -> Int64:
    """When all octets up to and with each segment's new ones had been captured: the time of the latest packet among them, in file order.

    File order, not clock order, tells what was there when: clocks of a capture may step back. Octets that the peer acknowledged without
    their ever being captured do not hold anything up; octets after a hole that nobody ever filled are never deliverable.
    """
    deliverable_at = segments.seen_at.copy()
    deliverable_at[:] = NONE
    order = in_stream_order(segments)
    if not order.size:
        return deliverable_at
    stream = streams_of(segments)[order]
    number, at = segments.packet[order], segments.seen_at[order]
    starts = np.searchsorted(stream, np.arange(2 * flows.count + 1))
    latest = running_edge(number, stream, starts)  # of the rows before
    held_up = latest > number
    ready = at.copy()
    if held_up.any():
        by_number = np.argsort(number, kind="stable")
        last = by_number[np.searchsorted(number[by_number], latest[held_up])]
        ready[held_up] = np.maximum(at[held_up], at[last])
    ready[_after_open_hole(segments, order, stream, flows)] = NONE
    deliverable_at[order] = ready
    return deliverable_at


def _after_open_hole(segments: Segments, order: Int64, stream: Int64, flows: Flows) -> Bool:
    """In stream order: rows with a hole somewhere before them that was neither filled nor acknowledged."""
    begin = segments.new_offset[order]
    end = segments.stream_offset[order] + segments.length[order]
    before = np.zeros(len(order), np.int64)
    before[1:] = np.where(stream[1:] == stream[:-1], end[:-1], 0)
    gap = begin > before
    blocked = np.zeros(len(order), np.bool_)
    if not gap.any():
        return blocked
    acknowledged = acknowledged_to(flows)
    gap &= begin > acknowledged[stream]
    if gap.any():
        opened = np.cumsum(gap)
        first = np.searchsorted(stream, stream)
        blocked = opened > opened[first] - gap[first]
    return blocked


def acknowledged_to(flows: Flows) -> Int64:
    """Of each direction: the stream offset up to which its peer acknowledged it; everything where the peer was not captured at all."""
    counts = np.diff(flows.starts)
    highest = np.zeros(len(counts), np.int64)
    present = np.flatnonzero(counts)
    if present.size:
        highest[present] = np.maximum.reduceat(flows.sequence.acked, flows.starts[present])
    peer = highest.reshape(-1, 2)[:, ::-1].reshape(-1).copy()
    peer[counts.reshape(-1, 2)[:, ::-1].reshape(-1) == 0] = np.iinfo(np.int64).max
    return peer
