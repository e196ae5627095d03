"""ICMP errors that ended a connection attempt: the network's own word that a server cannot be reached."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from netdiag.analysis.marks import Mark
from netdiag.wire.connections import Grouped
from netdiag.wire.icmp import IcmpError

TCP = 6
_UNREACHABLE = {4: (3, 11), 6: (1, 3)}
"""Destination unreachable and time exceeded (RFC 792, RFC 4443)."""
_FRAGMENTATION_NEEDED = (4, 3, 4)
MOST_ERRORS = 10_000

REASONS = {
    (4, 3, 0): "network unreachable",
    (4, 3, 1): "host unreachable",
    (4, 3, 3): "port unreachable",
    (4, 3, 9): "network administratively prohibited",
    (4, 3, 10): "host administratively prohibited",
    (4, 3, 13): "communication administratively prohibited",
    (6, 1, 0): "no route to destination",
    (6, 1, 1): "communication administratively prohibited",
    (6, 1, 3): "address unreachable",
    (6, 1, 4): "port unreachable",
}


def reason(error: IcmpError) -> str:
    """In words."""
    known = REASONS.get((error.version, error.type, error.code))
    return known or f"ICMP{'v6' if error.version == 6 else ''} type {error.type} code {error.code}"


def unreachable(grouped: Grouped, errors: Iterable[IcmpError]) -> dict[int, IcmpError]:
    """Connection id to the first error about a packet of its client."""
    wanted = [e for e in errors if e.protocol == TCP and ends_an_attempt(e)][:MOST_ERRORS]
    if not wanted or not len(grouped):
        return {}
    rows, packets = grouped.order[grouped.starts[:-1]], grouped.packets
    low, high, began = packets.low[rows], packets.high[rows], packets.captured_at[rows]
    found: dict[int, IcmpError] = {}
    for error in sorted(wanted, key=lambda e: e.captured_at):
        same = np.flatnonzero((low == np.uint64(error.low)) & (high == np.uint64(error.high)))
        same = same[began[same] <= error.captured_at]
        if len(same):
            found.setdefault(int(same[-1]), error)
    return found


def ends_an_attempt(error: IcmpError) -> bool:
    """Whether the packet that it is about, and those after it, do not get there."""
    too_big = (error.version, error.type, error.code) == _FRAGMENTATION_NEEDED
    return error.type in _UNREACHABLE[error.version] and not too_big


def mark_of(error: IcmpError) -> Mark:
    """When it came."""
    return Mark(error.captured_at, error.packet)
