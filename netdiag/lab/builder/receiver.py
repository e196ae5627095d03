"""The receiving half of a TCP endpoint: reassembly, the window, and when to acknowledge."""

from __future__ import annotations

from dataclasses import dataclass, field

from netdiag.lab.host_settings import TcpSettings

_MOST_SACK_BLOCKS = 3


@dataclass(slots=True)
class Receiver:
    """State of one direction, in stream offsets."""

    settings: TcpSettings
    nxt: int = 0
    """First octet not received in order."""
    fin_at: int | None = None
    """Offset of the peer's FIN."""
    fin_received: bool = False
    unread: bytearray = field(default_factory=bytearray)
    """In order, not yet taken by the application."""
    advertised_edge: int = 0
    """Right edge of the window as last told to the peer."""
    segments: int = 0
    unacknowledged: int = 0
    """In-order segments with data since the last acknowledgement left."""
    _held: dict[int, bytes] = field(default_factory=dict)
    _latest: int = 0

    @property
    def window(self) -> int:
        """Free receive buffer."""
        return max(0, self.settings.window_bytes - len(self.unread))

    def take(self, start: int, data: bytes, *, fin: bool) -> bool:
        """One segment's octets. True when it must be acknowledged at once (a hole, old octets, a FIN, or a full quota)."""
        self.segments += 1
        if fin:
            self.fin_at = start + len(data)
        in_order = start <= self.nxt < start + len(data)
        if start > self.nxt and data:
            self._held[start] = max(self._held.get(start, b""), data, key=len)
            self._latest = start
        filled_hole = bool(self._held)
        if in_order:
            self._append(start, data)
            self.unacknowledged += 1
        self.fin_received = self.fin_at is not None and self.nxt >= self.fin_at
        return not in_order or filled_hole or fin or self._quota_full()

    def _quota_full(self) -> bool:
        quick = self.segments <= self.settings.quick_acks or self.settings.delayed_ack_ms == 0
        return quick or self.unacknowledged >= 2

    def _append(self, start: int, data: bytes) -> None:
        room = self.window
        new = data[self.nxt - start :][:room]
        self.unread += new
        self.nxt += len(new)
        while following := [s for s in self._held if s <= self.nxt]:
            for held_start in sorted(following):
                held = self._held.pop(held_start)
                fresh = held[self.nxt - held_start :] if held_start + len(held) > self.nxt else b""
                self.unread += fresh
                self.nxt += len(fresh)

    def read(self) -> bytes:
        """Everything in order so far."""
        data = bytes(self.unread)
        self.unread.clear()
        return data

    def window_opened(self) -> bool:
        """Reading has freed so much that the window as told to the peer has at least doubled (as Linux decides it)."""
        told = self.advertised_edge - self.nxt
        return self.window >= 2 * max(told, 1)

    def sack_blocks(self) -> tuple[tuple[int, int], ...]:
        """Runs of octets beyond the hole, the newest first (RFC 2018 section 4)."""
        runs: list[list[int]] = []
        for start in sorted(self._held):
            end = start + len(self._held[start])
            if runs and start <= runs[-1][1]:
                runs[-1][1] = max(runs[-1][1], end)
            else:
                runs.append([start, end])
        runs.sort(key=lambda run: not run[0] <= self._latest < run[1])
        return tuple((left, right) for left, right in runs[:_MOST_SACK_BLOCKS])
