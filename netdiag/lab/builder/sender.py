"""The sending half of a TCP endpoint: what may leave now, what was lost, and when to try again.

A model after Linux's behaviour, small enough to reason about: slow start without congestion avoidance before the first loss, SACK-based fast
retransmission (RFC 6675), a tail-loss probe (RFC 8985 section 7) and the retransmission timer (RFC 6298, floor 200 ms).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from netdiag.lab.host_settings import TcpSettings

INITIAL_RTO_NS = 1_000_000_000
RTO_FLOOR_NS = 200_000_000
RTO_CEILING_NS = 120_000_000_000
"""RFC 6928."""
DUPLICATES_FOR_LOSS = 3


@dataclass(slots=True)
class Flight:
    """One segment's octets on their way (stream offsets)."""

    start: int
    end: int
    fin: bool
    sent_at: int
    resent: bool = False
    sacked: bool = False
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Departure:
    """A segment that is to leave now. ``kind``: ``new``, ``fast``, ``rto``, ``tlp``, ``window-probe`` or ``keep-alive``."""

    start: int
    end: int
    fin: bool
    push: bool
    kind: str


@dataclass(slots=True)
class RttEstimate:
    """RFC 6298."""

    smoothed_ns: int | None = None
    variation_ns: int = 0
    backoff: int = 0

    def sample(self, rtt_ns: int) -> None:
        """Take in one round trip of octets that were sent once (Karn)."""
        if self.smoothed_ns is None:
            self.smoothed_ns, self.variation_ns = rtt_ns, rtt_ns // 2
        else:
            self.variation_ns += (abs(self.smoothed_ns - rtt_ns) - self.variation_ns) // 4
            self.smoothed_ns += (rtt_ns - self.smoothed_ns) // 8
        self.backoff = 0

    @property
    def rto_ns(self) -> int:
        """Retransmission timeout, doubled for each time it fired in a row; Linux keeps the variation term above 200 ms."""
        base = INITIAL_RTO_NS
        if self.smoothed_ns is not None:
            base = self.smoothed_ns + max(4 * self.variation_ns, RTO_FLOOR_NS)
        return int(min(base << self.backoff, RTO_CEILING_NS))


@dataclass(slots=True)
class Sender:
    """State of one direction. ``emit`` puts a segment on the wire at once; the owner calls ``on_ack`` and ``on_timer``."""

    settings: TcpSettings
    emit: Callable[[Departure], None]
    stream: bytearray = field(default_factory=bytearray)
    """All octets ever written by the application."""
    mss: int = 1460
    peer_window: int = 65_535
    rtt: RttEstimate = field(default_factory=RttEstimate)
    una: int = 0
    """First octet not acknowledged."""
    nxt: int = 0
    """First octet never sent."""
    fin_queued: bool = False
    fin_sent: bool = False
    fin_acked: bool = False
    last_sent_at: int = 0
    timer_at: int | None = None
    """When ``on_timer`` wants to be called; None when nothing is outstanding."""
    congestion_window: int = 0
    sent_again: int = 0
    """Segments sent more than once."""
    _flights: list[Flight] = field(default_factory=list)
    _threshold: int | None = None
    _duplicates: int = 0
    _recovery_end: int | None = None
    _timer_is_probe: bool = False
    _probed: bool = False
    _acked_at: int = 0

    def open(self, mss: int, now: int) -> None:
        """The handshake is done."""
        self.mss = mss
        self.congestion_window = self.settings.initial_window_segments * mss
        self.last_sent_at = now

    @property
    def outstanding_bytes(self) -> int:
        """Sent and neither acknowledged, nor reported received, nor given up as lost."""
        return sum(f.end - f.start for f in self._flights if not f.sacked and not f.lost)

    @property
    def given_up(self) -> bool:
        """So many timeouts in a row that the peer must be gone (RFC 9293 section 3.8.3)."""
        return self.rtt.backoff > self.settings.data_retries

    @property
    def idle(self) -> bool:
        """Nothing is on its way and nothing waits."""
        return not self._flights and self.nxt == len(self.stream) and self.fin_queued <= self.fin_sent

    # --- sending ---------------------------------------------------------------------------------------------------

    def push(self, now: int) -> None:
        """Send what the windows allow."""
        self._restart_after_idle(now)
        while (departure := self._next()) is not None:
            self._depart(departure, now)
        self._arm(now)

    def _restart_after_idle(self, now: int) -> None:
        """RFC 5681 section 4.1 (Linux: tcp_slow_start_after_idle)."""
        idle = not self._flights and now - self.last_sent_at > self.rtt.rto_ns
        if idle and self.settings.slow_start_after_idle and self.nxt < len(self.stream):
            window = self.settings.initial_window_segments * self.mss
            self.congestion_window = min(self.congestion_window, window)

    def _next(self) -> Departure | None:
        unsent = len(self.stream) - self.nxt
        if not unsent:
            if self.fin_queued and not self.fin_sent:
                return Departure(self.nxt, self.nxt, fin=True, push=False, kind="new")
            return None
        window_room = self.una + self.peer_window - self.nxt
        room = min(window_room, self.congestion_window - self.outstanding_bytes)
        size = min(self.mss, unsent, room)
        if size <= 0 or self._held_back(size, unsent):
            return None
        return Departure(self.nxt, self.nxt + size, fin=False, push=size == unsent, kind="new")

    def _held_back(self, size: int, unsent: int) -> bool:
        """Nagle (RFC 9293 section 3.7.4), and no silly small segment because a window is nearly full."""
        if size == self.mss or not self._flights:
            return False
        return size < unsent or self.settings.nagle

    def _depart(self, departure: Departure, now: int) -> None:
        self.emit(departure)
        self._flights.append(Flight(departure.start, departure.end, departure.fin, now))
        self.nxt = departure.end
        self.fin_sent = self.fin_sent or departure.fin
        self.last_sent_at = now

    # --- acknowledgements ------------------------------------------------------------------------------------------

    def on_ack(self, ack: int, sacked: list[tuple[int, int]], window: int, *, has_payload: bool, now: int) -> None:
        """``ack`` and ``sacked`` are stream offsets; one more than the stream's length acknowledges the FIN."""
        window_changed = window != self.peer_window
        self.peer_window = window
        self._mark_sacked(sacked)
        if ack > self.una:
            self._advance(ack, now)
        elif self._flights and not has_payload and not window_changed:
            self._duplicates += 1
        self._find_losses()
        self._resend_lost(now)
        self.push(now)

    def _advance(self, ack: int, now: int) -> None:
        gone = [f for f in self._flights if f.end + f.fin <= ack]
        self._flights = [f for f in self._flights if f.end + f.fin > ack]
        once = [f for f in gone if not f.resent and not f.sacked]
        if once:
            self.rtt.sample(now - once[-1].sent_at)
        self.fin_acked = self.fin_acked or any(f.fin for f in gone)
        self.una = min(ack, len(self.stream))
        self._duplicates, self._probed, self._acked_at = 0, False, now
        if self._recovery_end is not None and ack >= self._recovery_end:
            self._recovery_end = None
        elif self._recovery_end is not None and self._flights and not self._flights[0].resent:
            self._flights[0].lost = True  # partial acknowledgement (RFC 6582 section 3.2)
        self._grow(sum(f.end - f.start for f in gone))

    def _grow(self, acked_bytes: int) -> None:
        if self._threshold is None or self.congestion_window < self._threshold:
            self.congestion_window += acked_bytes
        else:
            self.congestion_window += self.mss * acked_bytes // max(1, self.congestion_window)

    def _mark_sacked(self, sacked: list[tuple[int, int]]) -> None:
        for flight in self._flights:
            flight.sacked = flight.sacked or any(left <= flight.start and flight.end <= right for left, right in sacked)

    def _find_losses(self) -> None:
        """A segment is lost when three later ones have arrived, or three duplicate acknowledgements came without SACK."""
        if self._duplicates < DUPLICATES_FOR_LOSS and not any(f.sacked for f in self._flights):
            return
        lost = []
        for i, flight in enumerate(self._flights):
            later = sum(f.sacked for f in self._flights[i + 1 :])
            first_by_duplicates = i == 0 and self._duplicates >= DUPLICATES_FOR_LOSS
            if not flight.sacked and not flight.resent and (later >= DUPLICATES_FOR_LOSS or first_by_duplicates):
                lost.append(flight)
        if lost and self._recovery_end is None:
            self._recovery_end = self.nxt
            self._threshold = max(self.outstanding_bytes // 2, 2 * self.mss)
            self.congestion_window = self._threshold
        for flight in lost:
            flight.lost = True

    def _resend_lost(self, now: int) -> None:
        for flight in self._flights:
            first = flight is self._flights[0]
            if flight.lost and (first or self.outstanding_bytes < self.congestion_window):
                self._resend(flight, "fast" if self._recovery_end is not None else "rto", now)

    def _resend(self, flight: Flight, kind: str, now: int) -> None:
        flight.lost, flight.resent, flight.sent_at = False, True, now
        self.sent_again += 1
        self.emit(Departure(flight.start, flight.end, fin=flight.fin, push=True, kind=kind))
        self.last_sent_at = now

    # --- timers ----------------------------------------------------------------------------------------------------

    def _arm(self, now: int) -> None:
        self._timer_is_probe = False
        if not self._flights:
            blocked = self.peer_window <= 0 and self.nxt < len(self.stream)
            self.timer_at = now + self.rtt.rto_ns if blocked else None
            return
        rto_at = max(now, max(self._acked_at, self._flights[0].sent_at) + self.rtt.rto_ns)
        self.timer_at = rto_at
        if self.settings.tail_loss_probe and not self._probed and self._recovery_end is None and not self.rtt.backoff:
            probe_at = now + self._probe_timeout_ns()
            if self.rtt.smoothed_ns is not None:
                self._timer_is_probe, self.timer_at = True, min(probe_at, rto_at)

    def _probe_timeout_ns(self) -> int:
        """Two round trips; with one segment out, also the time the peer may delay its acknowledgement."""
        alone = len(self._flights) == 1
        return 2 * (self.rtt.smoothed_ns or 0) + (RTO_FLOOR_NS if alone else 2_000_000)

    def on_timer(self, now: int) -> None:
        """The instant ``timer_at`` has come."""
        if not self._flights:
            self._probe_window(now)
        elif self._timer_is_probe:
            self._probe_tail(now)
        else:
            self._time_out(now)

    def _probe_window(self, now: int) -> None:
        self.emit(Departure(self.nxt - 1, self.nxt - 1, fin=False, push=False, kind="window-probe"))
        self.rtt.backoff += 1
        self.timer_at = now + self.rtt.rto_ns

    def _probe_tail(self, now: int) -> None:
        self._probed = True
        new = self._next()
        if new is not None:
            self._depart(new, now)
        else:
            self._resend(self._flights[-1], "tlp", now)
        self._arm(now)

    def _time_out(self, now: int) -> None:
        self.rtt.backoff += 1
        self._threshold = max(self.outstanding_bytes // 2, 2 * self.mss)
        self.congestion_window, self._recovery_end, self._duplicates = self.mss, None, 0
        for flight in self._flights:
            flight.lost = not flight.sacked
        self._resend(self._flights[0], "rto", now)
        self._arm(now)
