"""Packets of some endpoint pairs, which fit into memory together, and where the parts of their connections begin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from netdiag.wire.connections import Grouped
from netdiag.wire.tables import Int64

PART_PACKETS = 1 << 17


class Partition:
    """Packets of some endpoint pairs, grouped into connections when somebody asks. ``base`` is the number of the first of them, while
    connections are counted partition by partition."""

    def __init__(self, load: Callable[[], Grouped], base: int, *, keep: bool) -> None:
        self._load, self.base = load, base
        grouped = load()
        self.count = len(grouped)
        self.edges = _edges(grouped.starts, PART_PACKETS)
        self._grouped: Grouped | None = grouped
        self._keep = keep

    @property
    def grouped(self) -> Grouped:
        """Its packets."""
        if self._grouped is None:
            self._grouped = self._load()
        return self._grouped

    def first_packets(self) -> Int64:
        """Frame number of the first packet of each connection."""
        return self.grouped.packets.number[self.grouped.order[self.grouped.starts[:-1]]]

    def release(self) -> None:
        """What can be loaded again need not stay."""
        if not self._keep:
            self._grouped = None


def _edges(starts: Int64, part_packets: int) -> list[int]:
    """Connections at which parts begin, and their number at the end; a part has at least one connection."""
    edges, last = [0], len(starts) - 1
    while edges[-1] < last:
        wanted = int(starts[edges[-1]]) + part_packets
        edges.append(max(edges[-1] + 1, min(last, int(np.searchsorted(starts, wanted, "right")) - 1)))
    return edges
