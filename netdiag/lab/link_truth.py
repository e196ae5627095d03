"""What the link's log says about one connection: when octets were first sent by the client, and when the client could use what came.

The log has every frame with its sequence number, so losses, repairs, reorderings and queues are in these instants as they really were.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from netdiag.lab.emulator import LinkRow

_MODULUS = 1 << 32
_HALF = 1 << 31
_WORLDS_APART_NS = 300_000
"""A server's arrival stamp may lie this much before the link's own, taken after ``send`` has returned."""


@dataclass(slots=True)
class Side:
    """One direction of a connection, offsets counted from the first octet after the SYN."""

    syn_at: int | None = None
    """First SYN (or SYN-ACK) at the link, delivered or not."""
    syn_left_at: int | None = None
    """The first that got through."""
    isn: int | None = None
    rows: list[tuple[int, LinkRow]] = field(default_factory=list)
    """(stream offset of the first octet, row) of every data frame."""

    def add(self, row: LinkRow) -> None:
        """Take one frame of this direction."""
        if row.kind in ("syn", "syn-ack"):
            self.isn = row.seq
            self.syn_at = row.arrived_at if self.syn_at is None else self.syn_at
            if self.syn_left_at is None:
                self.syn_left_at = row.left_at
        elif row.kind == "data" and self.isn is not None:
            offset = (row.seq - self.isn - 1) % _MODULUS
            self.rows.append((offset if offset < _MODULUS - _HALF else offset - _MODULUS, row))

    def first_sent_at(self, offset: int) -> int | None:
        """First transmission of the octet; None when it never came to the link."""
        sent = [row.arrived_at for start, row in self.rows if start <= offset < start + row.payload_bytes]
        return min(sent, default=None)

    def deliverable_at(self, end_offset: int) -> int | None:
        """When all octets before ``end_offset`` had got through; None when they never did."""
        got = sorted((row.left_at, start, start + row.payload_bytes) for start, row in self.rows if _delivered(row))
        frontier, waiting = 0, list[tuple[int, int]]()
        for at, start, end in got:
            waiting.append((start, end))
            waiting.sort()
            while waiting and waiting[0][0] <= frontier:
                frontier = max(frontier, waiting.pop(0)[1])
            if frontier >= end_offset:
                return at
        return None

    def end_of_what_came_by(self, at: int) -> int | None:
        """Offset after the last octet that had got through by then (by the receiver's clock, the same machine's)."""
        ends = [
            start + row.payload_bytes
            for start, row in self.rows
            if _delivered(row) and row.due_at is not None and row.due_at <= at + _WORLDS_APART_NS
        ]
        return max(ends, default=None)


def _delivered(row: LinkRow) -> bool:
    return row.left_at is not None and row.action != "reset"


@dataclass(slots=True)
class LinkedConnection:
    """One TCP connection as the link saw it."""

    up: Side = field(default_factory=Side)
    down: Side = field(default_factory=Side)

    @property
    def connect_ns(self) -> int | None:
        """The client's first SYN to the SYN-ACK's arrival at the client."""
        if self.up.syn_at is None or self.down.syn_left_at is None:
            return None
        return self.down.syn_left_at - self.up.syn_at


def by_client_port(rows: Iterable[LinkRow]) -> dict[int, LinkedConnection]:
    """Connections by the client's port (a testbed is too short-lived to use one twice), frames in the order of their arrival."""
    found: dict[int, LinkedConnection] = {}
    for row in sorted(rows, key=lambda row: row.arrived_at):
        if row.kind not in ("other", "udp", "dns"):
            side = found.setdefault(row.client_port, LinkedConnection())
            (side.up if row.direction == "up" else side.down).add(row)
    return found
