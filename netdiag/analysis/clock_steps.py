"""Where a capture's own times go back: its clock was set, or files were joined that do not follow each other."""

from __future__ import annotations

import numpy as np

from netdiag.records.anomaly import Anomaly
from netdiag.units import format_duration
from netdiag.wire.tables import NONE, Int64, RawPackets

LEAST_STEP_NS = 100_000_000
"""Queues and interfaces hand packets over in slightly another order than they came; none is that late."""


class ClockSteps:
    """Counts them over a file's windows, in the order of the file."""

    def __init__(self) -> None:
        self._last_at: int | None = None
        self._count = 0
        self._largest_ns = 0
        self._first_packet = 0

    def see(self, packets: RawPackets) -> None:
        """The next window."""
        stamped = packets.captured_at != NONE
        at: Int64 = packets.captured_at if stamped.all() else packets.captured_at[stamped]
        if not len(at):
            return
        back = np.diff(at, prepend=at[0] if self._last_at is None else self._last_at)
        self._last_at = int(at[-1])
        places = np.flatnonzero(back <= -LEAST_STEP_NS)
        if not len(places):
            return
        if not self._count:
            self._first_packet = int(packets.number[stamped][places[0]])
        self._count += len(places)
        self._largest_ns = max(self._largest_ns, -int(back[places].min()))

    def anomalies(self) -> list[Anomaly]:
        """One for all of them; none where there is none."""
        if not self._count:
            return []
        often = "" if self._count == 1 else f", {self._count:,} times, at most"
        reason = f"times go back{often} by {format_duration(self._largest_ns)}: what lasted across that is not known"
        return [Anomaly(protocol="file", reason=reason, packet=self._first_packet)]
