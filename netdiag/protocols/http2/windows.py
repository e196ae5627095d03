"""The flow-control ledger of one HTTP/2 connection (RFC 9113 section 5.2): whose window was used up, from when to when."""

from __future__ import annotations

from dataclasses import dataclass

from netdiag.protocols.conversation import WindowStall
from netdiag.protocols.http2.frames import DEFAULT_WINDOW
from netdiag.wire.chunk import Moment

# Senders leave a remainder unused rather than send a very small frame.
NEARLY_CLOSED = 1024
_MOST_STALLS = 10_000
_MOST_GROWTHS = 1000


@dataclass(slots=True)
class _Stop:
    since: Moment
    left: int
    growths: int
    """How often the peer had raised the initial window by then."""
    until: Moment | None = None


class WindowLedger:
    """Windows of both senders. A side whose beginning was not captured has unknown windows and no stalls."""

    def __init__(self) -> None:
        self.known = [True, True]
        self.stalls: list[WindowStall] = []
        self._connection = [DEFAULT_WINDOW, DEFAULT_WINDOW]
        self._initial = [DEFAULT_WINDOW, DEFAULT_WINDOW]
        # What a stream has used of its window, not what is left: a new initial window then changes all of them at once.
        self._used: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self._growths: tuple[list[Moment], list[Moment]] = ([], [])
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
        if left < NEARLY_CLOSED and others_owe:
            self._stops[sender, 0] = _Stop(last, left, 0)
        used = self._used[sender]
        spent = used[stream_id] = used.get(stream_id, 0) + length
        left = self._initial[sender] - spent
        if left < NEARLY_CLOSED and owes:
            self._stops[sender, stream_id] = _Stop(last, left, len(self._growths[sender]))

    def update(self, sender: int, stream_id: int, increment: int, moment: Moment) -> None:
        """The peer of ``sender`` opened a window by WINDOW_UPDATE."""
        if stream_id == 0:
            self._connection[sender] += increment
        else:
            used = self._used[sender]
            used[stream_id] = used.get(stream_id, 0) - increment
        self._opened(sender, stream_id, moment)

    def initial_window(self, sender: int, size: int, moment: Moment) -> None:
        """The peer of ``sender`` announced SETTINGS_INITIAL_WINDOW_SIZE: open streams change by the difference (section 6.9.2)."""
        if size > self._initial[sender] and len(self._growths[sender]) < _MOST_GROWTHS:
            self._growths[sender].append(moment)
        self._initial[sender] = size

    def close(self, stream_id: int) -> None:
        """The stream ended; a stop that was still on stays a stall without end."""
        for sender in (0, 1):
            self._used[sender].pop(stream_id, None)
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
        if stop is not None and self._until(sender, stream_id, stop) is not None:
            self._add(sender, stream_id, stop, first)

    def _until(self, sender: int, stream_id: int, stop: _Stop) -> Moment | None:
        """When the window was opened: by WINDOW_UPDATE, or for a stream by a larger initial window, whichever came first."""
        growths = self._growths[sender]
        grown = growths[stop.growths] if stream_id and stop.growths < len(growths) else None
        if stop.until is None or grown is None:
            return stop.until or grown
        return min(stop.until, grown, key=lambda moment: moment.deliverable_at)

    def _add(self, sender: int, stream_id: int, stop: _Stop, resumed: Moment | None) -> None:
        if len(self.stalls) < _MOST_STALLS:
            self.stalls.append(
                WindowStall(
                    sender=sender,
                    stream_id=stream_id,
                    since=stop.since,
                    window_bytes=stop.left,
                    until=self._until(sender, stream_id, stop),
                    resumed=resumed,
                )
            )
