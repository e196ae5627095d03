"""Stalls of a stream: gaps far above its usual pace, and whose fault each is.

The conservation test: a server that was merely held up by the network goes on producing, so what comes later is back on the schedule;
a server that paused is late by as much for the rest of the stream. Evidence on the wire (a hole, a missing packet number, a closed
window) and the client's own reading go before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from netdiag.analysis.held_up import HeldUp, Witnessed
from netdiag.analysis.median import median
from netdiag.plain import plain
from netdiag.records.stream import SIGNS_OF_LIFE, TOKEN_BEARING, EventKind, StallCause, StreamEvent, StreamStall

NEARBY = 20
"""Events on either side that say what the pace is."""
FEWEST_ARRIVALS = 3
"""Gaps between arrivals nearby that make a pace."""
TIMES_USUAL, LEAST_EXCESS_NS = 3.0, 20_000_000
"""A gap so many times the usual one stands out where it exceeds it by this much: what is shorter nobody sees, and a busy machine makes it."""
LESS_TIMES_USUAL, SEEN_EXCESS_NS = 1.5, 100_000_000
"""So does one of fewer times that costs this much: a lost token of a slow stream comes back in less than another gap's time."""
SPREADS = 10
"""In any case it is so many median deviations (6.7 standard deviations of a normal one) above the usual one: a model's own pace varies."""
TOGETHER_NS = 1_000_000
"""Arrivals closer than this are one."""
NETWORK_BELOW, SERVER_ABOVE = 0.3, 0.7
_FEWEST_FOR_SLOPE = 4
_CATCH_UP = 0.5
"""After a stall of the network events follow each other faster than this share of the usual gap until the backlog is through."""
_ENOUGH = 0.5
"""Share of the excess that evidence on the wire must cover to decide."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known around a stream besides its events."""

    rtt_ns: int | None = None
    held_up: HeldUp | None = None
    """None without packets, or where nothing was held up."""
    closed_windows: tuple[tuple[int, int], ...] = ()
    """When HTTP/2 flow control kept the server from sending."""
    absences: tuple[tuple[int, int], ...] = ()
    """When the application asked for nothing: octets that came meanwhile bear the stamp of the last of them."""
    stamped_late: bool = False
    """Events were stamped when the application read them: a late reader looks like a late network."""
    collected: bool = False
    """Something on the way collects events: releasing them looks like a network that catches up."""


def progress(events: Sequence[StreamEvent]) -> list[StreamEvent]:
    """The events that carry the answer forward: those with text, or where no API is known, all that are no mere signs."""
    bearing = [e for e in events if e.kind in TOKEN_BEARING]
    return bearing or [e for e in events if e.kind is EventKind.OTHER]


def find_stalls(events: Sequence[StreamEvent], around: Surroundings) -> tuple[StreamStall, ...]:
    """All stalls of a stream in the order of time."""
    steps = progress(events)
    found = [_judged(gap, events, around) for gap in _long_gaps([e.deliverable_at for e in steps], steps, around)]
    if any(e.read_at is not None for e in steps):
        found += _late_reads(steps, around)
    return tuple(sorted(found, key=lambda s: s.started_at))


# -- finding -------------------------------------------------------------------------------------------------------------------------


@plain(frozen=True, slots=True)
class _Gap:
    """Between ``steps[place]`` and the one after it."""

    steps: Sequence[StreamEvent]
    at: Sequence[int]
    place: int
    usual_ns: int

    @property
    def gap_ns(self) -> int:
        return self.at[self.place + 1] - self.at[self.place]

    @property
    def excess_ns(self) -> int:
        return self.gap_ns - self.usual_ns


def _long_gaps(at: Sequence[int], steps: Sequence[StreamEvent], around: Surroundings) -> Iterator[_Gap]:
    least = max(LEAST_EXCESS_NS, around.rtt_ns or 0)
    for place in range(len(at) - 1):
        if at[place + 1] - at[place] <= least:
            continue
        pace = _pace(at, place)
        if pace is None:
            continue
        gap = _Gap(steps, at, place, pace[0])
        if _stands_out(gap.gap_ns, *pace) or _is_a_hole(gap, around.held_up):
            yield gap


def _is_a_hole(gap: _Gap, held_up: HeldUp | None) -> bool:
    """A shorter gap counts, too, where packets prove what it was."""
    if held_up is None or gap.excess_ns <= LEAST_EXCESS_NS or gap.gap_ns <= LESS_TIMES_USUAL * gap.usual_ns:
        return False
    return held_up.answer_holes(gap.at[gap.place], gap.at[gap.place + 1]).ends_it


def _stands_out(gap_ns: int, usual_ns: int, deviation_ns: float) -> bool:
    excess_ns = gap_ns - usual_ns
    long = gap_ns > TIMES_USUAL * usual_ns and excess_ns > LEAST_EXCESS_NS
    costly = gap_ns > LESS_TIMES_USUAL * usual_ns and excess_ns > SEEN_EXCESS_NS
    return (long or costly) and excess_ns > SPREADS * deviation_ns


def _pace(at: Sequence[int], place: int) -> tuple[int, float] | None:
    """Median time between arrivals around a gap, the gap left out, and its median deviation; None where there are too few."""
    gaps = [*_arrivals(at[max(0, place - NEARBY) : place + 1]), *_arrivals(at[place + 1 : place + 2 + NEARBY])]
    if len(gaps) < FEWEST_ARRIVALS:
        return None
    usual = median(gaps)
    return round(usual), median(abs(gap - usual) for gap in gaps)


def _arrivals(at: Sequence[int]) -> list[int]:
    """Times between arrivals that are not one and the same."""
    return [later - earlier for earlier, later in pairwise(at) if later - earlier >= TOGETHER_NS]


# -- attributing ---------------------------------------------------------------------------------------------------------------------


def _judged(gap: _Gap, events: Sequence[StreamEvent], around: Surroundings) -> StreamStall:
    before, after = gap.steps[gap.place], gap.steps[gap.place + 1]
    signs = [e for e in events[before.index + 1 : after.index] if e.kind in SIGNS_OF_LIFE]
    shift_ns = shift_of(gap.at, gap.place)
    cause, method, packets = _cause(gap, shift_ns, signs, around)
    ends = [e.packet for e in (before, after) if e.packet is not None]
    return StreamStall(
        started_at=gap.at[gap.place],
        after_event=before.index,
        gap_ns=gap.gap_ns,
        usual_ns=gap.usual_ns,
        excess_ns=gap.excess_ns,
        shift_ns=shift_ns,
        shift_share=None if shift_ns is None else round(shift_ns / gap.excess_ns, 3),
        cause=cause,
        method=method,
        signs_of_life=len(signs),
        packets=tuple(dict.fromkeys([*ends, *packets])),
    )


def _cause(
    gap: _Gap, shift_ns: int | None, signs: Sequence[StreamEvent], around: Surroundings
) -> tuple[StallCause, str, tuple[int, ...]]:
    start, end = gap.at[gap.place], gap.at[gap.place + 1]
    share = None if shift_ns is None else shift_ns / gap.excess_ns
    server_paused = share is not None and share > SERVER_ABOVE
    enough_ns = _ENOUGH * gap.excess_ns
    unseen: Witnessed | None = None
    if around.held_up is not None:
        hole = around.held_up.answer_holes(start, end)
        if hole.ns >= enough_ns or (hole.ends_it and not server_paused):
            return StallCause.NETWORK, "hole", hole.packets
        window = around.held_up.answer_windows(start, end)
        if window.ns >= enough_ns:
            return StallCause.CLIENT, "window", window.packets
        unseen = around.held_up.answer_unseen_losses(start, end)
    if _overlap_ns(around.closed_windows, start, end) >= enough_ns:
        return StallCause.CLIENT, "flow-control", ()
    if signs and _longest_silence_ns(gap, signs) - gap.usual_ns < NETWORK_BELOW * gap.excess_ns:
        # Octets come in order: while the network holds one up, none of any event comes.
        return StallCause.SERVER, "signs-of-life", ()
    if unseen is not None and unseen.ends_it and not server_paused:
        return StallCause.NETWORK, "packet-count", unseen.packets
    if not server_paused and _overlap_ns(around.absences, start, end) >= enough_ns:
        return StallCause.CLIENT, "read-lag", ()
    return (*_by_conservation(share, around), ())


def _longest_silence_ns(gap: _Gap, signs: Sequence[StreamEvent]) -> int:
    heard = [gap.at[gap.place], *(e.deliverable_at for e in signs), gap.at[gap.place + 1]]
    return max(later - earlier for earlier, later in pairwise(heard))


def _overlap_ns(spans: Sequence[tuple[int, int]], start: int, end: int) -> int:
    return sum(max(0, min(end, last) - max(start, first)) for first, last in spans)


def _by_conservation(share: float | None, around: Surroundings) -> tuple[StallCause, str]:
    if share is None:
        return StallCause.UNDECIDED, "none"
    if share > SERVER_ABOVE:
        return StallCause.SERVER, "conservation"
    if share < NETWORK_BELOW and not around.stamped_late and not around.collected:
        return StallCause.NETWORK, "conservation"
    return StallCause.UNDECIDED, "conservation"


def shift_of(at: Sequence[int], place: int) -> int | None:
    """By how much the schedule after the gap at ``place`` is later than the one before it; None where too little follows.

    A line of common slope through the events nearby, with an intercept of its own on either side. What follows the gap in a hurry is
    the backlog and says nothing about the schedule; where the stream ends with it, its last event bounds the shift from above.
    """
    before = at[max(0, place - NEARBY) : place + 1]
    if len(at) - place - 1 < (2 if len(before) > 1 else 3):
        return None
    slope = _slope(before, at[place + 1 : place + 2 + NEARBY])
    if slope is None:
        return None
    caught_up = _caught_up(at, place + 1, slope)
    since, start = at[place], place + 1 - len(before)  # a float does not hold an epoch's nanoseconds
    early = median(t - since - slope * i for i, t in enumerate(before, start))
    settled = at[caught_up : caught_up + NEARBY]
    late = median(t - since - slope * i for i, t in enumerate(settled, caught_up))
    return round(late - early)


def _caught_up(at: Sequence[int], first: int, slope: float) -> int:
    """The first event after a gap that did not follow it in a hurry; the last of the stream if all did."""
    for i in range(first, len(at) - 1):
        if at[i + 1] - at[i] >= _CATCH_UP * slope:
            # What comes after a backlog's last event is early with respect to that one, which was late itself.
            return i if i == first else i + 1
    return len(at) - 1


def _slope(before: Sequence[int], after: Sequence[int]) -> float | None:
    """Time per event: Theil–Sen over pairs on one side, the side before the gap where it has enough; what came together right after
    the gap may be a backlog and is left out of the other."""
    if len(before) >= _FEWEST_FOR_SLOPE:
        return median(_pair_slopes(before))
    apart = next((i for i in range(1, len(after)) if after[i] - after[i - 1] >= TOGETHER_NS), len(after))
    slopes = [*_pair_slopes(before), *_pair_slopes(after[apart:])]
    return median(slopes) if slopes else None


def _pair_slopes(at: Sequence[int]) -> list[float]:
    return [(at[j] - at[i]) / (j - i) for i in range(len(at)) for j in range(i + 1, len(at))]


# -- the reader ----------------------------------------------------------------------------------------------------------------------


def _late_reads(steps: Sequence[StreamEvent], around: Surroundings) -> list[StreamStall]:
    """Gaps in the application's reading where the octets were there: the client was late, the stream was not."""
    read = [e for e in steps if e.read_at is not None]
    at = [e.read_at for e in read if e.read_at is not None]
    found = []
    for gap in _long_gaps(at, read, around):
        before, after = read[gap.place], read[gap.place + 1]
        lag_ns = at[gap.place + 1] - after.deliverable_at
        if lag_ns >= _ENOUGH * gap.excess_ns:
            found.append(
                StreamStall(
                    started_at=at[gap.place],
                    after_event=before.index,
                    gap_ns=gap.gap_ns,
                    usual_ns=gap.usual_ns,
                    excess_ns=gap.excess_ns,
                    shift_ns=None,
                    shift_share=None,
                    cause=StallCause.CLIENT,
                    method="read-lag",
                    packets=tuple(p for p in (before.packet, after.packet) if p is not None),
                )
            )
    return found
