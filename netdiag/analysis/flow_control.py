"""HTTP/2 flow control (RFC 9113 section 5.2): when a sender of DATA had to wait until its peer opened a window.

A window that is opened at one end is known at the other only half a round trip later: until octets flow again, but for at most that round
trip, the sender still waits for nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from netdiag.plain import plain
from netdiag.protocols.conversation import CLIENT, SERVER, Http2Facts, WindowStall
from netdiag.records.connection import Connection

Span = tuple[int, int]

FOR_EVER = 1 << 62


@plain(frozen=True, slots=True)
class StreamWindows:
    """One exchange's part of it."""

    closed: tuple[Span, ...] = ()
    """From when the server might send no more until the client opened the window again."""
    uploads: tuple[Span, ...] = ()
    """When the client could not send for want of window."""
    downloads: tuple[Span, ...] = ()
    """When the server could not."""


class FlowControl:
    """The windows of one connection and its streams."""

    def __init__(self, facts: Http2Facts | None, connection: Connection) -> None:
        # Without the connection's beginning nobody knows how large its windows are.
        stalls = facts.stalls if facts is not None else ()
        self.known = facts is not None and facts.preface is not None
        self._by_stream: dict[int, list[tuple[int, WindowStall]]] = {}
        for place, stall in enumerate(stalls):
            self._by_stream.setdefault(stall.stream_id, []).append((place, stall))
        self._rtt_ns = (connection.client_rtt_ns or 0, connection.server_rtt_ns or 0)
        self._without_own = self._told(self._by_stream.get(0, ()))

    def of(self, stream_id: int | None) -> StreamWindows | None:
        """What concerns one stream: its own windows and the connection's. None where windows are not known."""
        if not self.known:
            return None
        own = self._by_stream.get(stream_id or 0, ())
        if not stream_id or not own:
            return self._without_own
        return self._told(sorted([*self._by_stream.get(0, ()), *own], key=lambda one: one[0]))

    def _told(self, stalls: Sequence[tuple[int, WindowStall]]) -> StreamWindows:
        if not stalls:
            return _NEVER
        return StreamWindows(
            closed=tuple(
                (stall.since.deliverable_at, stall.until.deliverable_at)
                for _, stall in stalls
                if stall.sender == SERVER and stall.until is not None
            ),
            uploads=self._waits(stalls, CLIENT),
            downloads=self._waits(stalls, SERVER),
        )

    def _waits(self, stalls: Sequence[tuple[int, WindowStall]], sender: int) -> tuple[Span, ...]:
        mine = (stall for _, stall in stalls if stall.sender == sender)
        return tuple((stall.since.deliverable_at, self._resumed_at(stall)) for stall in mine)

    def _resumed_at(self, stall: WindowStall) -> int:
        if stall.until is None:
            return FOR_EVER
        known_at = stall.until.deliverable_at + self._rtt_ns[stall.sender]
        return known_at if stall.resumed is None else min(known_at, stall.resumed.deliverable_at)


_NEVER = StreamWindows()


def held_ns(spans: Sequence[Span], started_at: int, ended_at: int) -> int:
    """Time of the interval that lies in any of the spans."""
    total, covered_to = 0, started_at
    for begin, end in sorted(spans):
        total += max(0, min(end, ended_at) - max(begin, covered_to))
        covered_to = max(covered_to, min(end, ended_at))
    return total
