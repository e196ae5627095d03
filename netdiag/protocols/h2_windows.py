"""The flow-control ledger of one HTTP/2 connection (RFC 9113 section 5.2): whose window was used up, from when to when."""

from __future__ import annotations

from dataclasses import dataclass

from netdiag.protocols.conversation import WindowStall
from netdiag.protocols.h2_frames import DEFAULT_WINDOW
from netdiag.wire.chunk import Moment

# Senders leave a remainder unused rather than send a very small frame.
_NEARLY_CLOSED = 1024
_MOST_STALLS = 10_000


@dataclass(slots=True)
class _Stop:
    since: Moment
    left: int
    until: Moment | None = None


class WindowLedger:
    """Windows of both senders. A side whose beginning was not captured has unknown windows and no stalls."""

    def __init__(self) -> None:
        self.known = [True, True]
        self.stalls: list[WindowStall] = []
        self._connection = [DEFAULT_WINDOW, DEFAULT_WINDOW]
        self._initial = [DEFAULT_WINDOW, DEFAULT_WINDOW]
        self._streams: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self._stops: dict[tuple[int, int], _Stop] = {}

    def data(
        self, sender: int, stream_id: int, length: int, first: Moment, last: Moment, *, owes: bool, others_owe: bool
    ) -> None:
        """One DATA frame of ``length`` octets (padding counts). ``owes``: its stream has more to send; ``others_owe``: some stream has."""
        if not self.known[sender]:
            return
        if self._stops:
            self._resume(sender, stream_id, first)
            self._resume(sender, 0, first)
        left = self._connection[sender] = self._connection[sender] - length
        if left < _NEARLY_CLOSED and others_owe:
            self._stops[sender, 0] = _Stop(last, left)
        windows = self._streams[sender]
        left = windows[stream_id] = windows.get(stream_id, self._initial[sender]) - length
        if left < _NEARLY_CLOSED and owes:
            self._stops[sender, stream_id] = _Stop(last, left)

    def update(self, sender: int, stream_id: int, increment: int, moment: Moment) -> None:
        """The peer of ``sender`` opened a window by WINDOW_UPDATE."""
        if stream_id == 0:
            self._connection[sender] += increment
        else:
            windows = self._streams[sender]
            windows[stream_id] = windows.get(stream_id, self._initial[sender]) + increment
        self._opened(sender, stream_id, moment)

    def initial_window(self, sender: int, size: int, moment: Moment) -> None:
        """The peer of ``sender`` announced SETTINGS_INITIAL_WINDOW_SIZE: open streams change by the difference (section 6.9.2)."""
        change = size - self._initial[sender]
        self._initial[sender] = size
        windows = self._streams[sender]
        for stream_id in windows:
            windows[stream_id] += change
            if change > 0:
                self._opened(sender, stream_id, moment)

    def close(self, stream_id: int) -> None:
        """The stream ended; a stop that was still on stays a stall without end."""
        for sender in (0, 1):
            self._streams[sender].pop(stream_id, None)
            if self._stops:
                stop = self._stops.pop((sender, stream_id), None)
                if stop is not None:
                    self._add(sender, stream_id, stop, None)

    def finish(self) -> None:
        """The capture of this connection ended."""
        for (sender, stream_id), stop in self._stops.items():
            self._add(sender, stream_id, stop, None)
        self._stops.clear()

    def _opened(self, sender: int, stream_id: int, moment: Moment) -> None:
        stop = self._stops.get((sender, stream_id)) if self._stops else None
        if stop is not None and stop.until is None:
            stop.until = moment

    def _resume(self, sender: int, stream_id: int, first: Moment) -> None:
        """DATA again. Without an update in between the window was not what stopped it."""
        stop = self._stops.pop((sender, stream_id), None)
        if stop is not None and stop.until is not None:
            self._add(sender, stream_id, stop, first)

    def _add(self, sender: int, stream_id: int, stop: _Stop, resumed: Moment | None) -> None:
        if len(self.stalls) < _MOST_STALLS:
            self.stalls.append(
                WindowStall(
                    sender=sender,
                    stream_id=stream_id,
                    since=stop.since,
                    window_bytes=stop.left,
                    until=stop.until,
                    resumed=resumed,
                )
            )
