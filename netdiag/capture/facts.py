"""What a reader learns about a capture file besides its packets."""

from __future__ import annotations

from dataclasses import dataclass, field

from netdiag.plain import plain
from netdiag.records.anomaly import Anomaly
from netdiag.wire.tables import Interface

MAX_PACKET_BYTES = 262_144
"""Longer records are damage (libpcap's and Wireshark's limit for everything but D-Bus and USB)."""
MAX_ANOMALIES = 1000
"""Of one file; a file of nothing but damage must not fill the memory."""


@dataclass(frozen=True, slots=True)
class Comment:
    """Text that somebody wrote into the file."""

    text: str
    packet: int | None = None
    """Frame number; None for a comment on the section or an interface."""


@plain(slots=True)
class FileFacts:
    """Filled in while the file is read; complete after its last window."""

    interfaces: list[Interface] = field(default_factory=list)
    anomalies: list[Anomaly] = field(default_factory=list)
    secrets: list[bytes] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    cut_at_byte: int | None = None
    """Where a cut or damaged file (first) stopped being readable."""
    drops: dict[int, int] = field(default_factory=dict)
    """Packets that were dropped, by interface, as last said by its statistics."""
    drops_between_packets: int | None = None
    """Sum of the drop counts that packet blocks carry; None when none does."""
    packets: int = 0
    """Frames so far."""

    def anomaly(self, reason: str, *, offset: int | None = None, packet: int | None = None) -> None:
        """Note damage of the file."""
        if len(self.anomalies) < MAX_ANOMALIES:
            self.anomalies.append(Anomaly(protocol="file", reason=reason, offset=offset, packet=packet))

    def cut(self, reason: str, offset: int) -> None:
        """Note that octets from ``offset`` on could not be read."""
        self.anomaly(reason, offset=offset)
        if self.cut_at_byte is None:
            self.cut_at_byte = offset

    @property
    def dropped_packets(self) -> int | None:
        """What the capturing system says it dropped; None when it does not say."""
        if self.drops:
            return sum(self.drops.values())
        return self.drops_between_packets

    @property
    def timestamp_resolution_ns(self) -> int | None:
        """Of the coarsest interface, at least 1; None without an interface."""
        if not self.interfaces:
            return None
        return max(1, *(1_000_000_000 // i.ticks_per_second for i in self.interfaces))
