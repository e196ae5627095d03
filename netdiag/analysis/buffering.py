"""The proxy-buffering detector: scores of how a stream's events and their records arrived, and a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from netdiag.analysis.median import median
from netdiag.analysis.stalls import TOGETHER_NS, progress
from netdiag.records.stream import SIGNS_OF_LIFE, Delivery, StreamBuffering, StreamEvent
from netdiag.units import NS_PER_S, format_duration

FEWEST_EVENTS = 10
"""An answer of fewer may well come in one go."""
IMMEDIATE_SHARE, MANY_PER_RECORD = 0.6, 4.0
MOST_EVENTS_PER_S = 200
"""Above this, events less than 1 ms apart are the pace itself."""
LATE_FIRST_SHARE, LONG_STREAM_NS = 0.9, NS_PER_S
BUFFERS = (4_096, 8_192, 16_384, 32_768)
_JUST_UNDER = 0.8
"""A buffer is let go when the next event does not fit: a record ends within one event of it. (nginx' 4 KiB: 3,355 to 4,122 octets.)"""
_FRAMING_BYTES = 64
"""Chunk headers, HTTP/2 frame headers and the like on top."""
_BLOCKS_SHARE = 0.5
_FEWEST_BURSTS, _REGULAR = 3, 0.3
_BURST_OF = 2.0


def buffering(
    events: Sequence[StreamEvent], *, first_event_ns: int | None, end_ns: int | None, head_with_first_event: bool | None
) -> StreamBuffering | None:
    """None where nothing was streamed. Times count from the request's first octet."""
    steps = progress(events)
    if len(steps) < 2:
        return None
    at = [e.deliverable_at for e in steps]
    gaps = [later - earlier for earlier, later in pairwise(at)]
    per_record = events_per_record(events)
    immediate = sum(gap < TOGETHER_NS for gap in gaps) / len(gaps)
    late = first_event_ns / end_ns if first_event_ns is not None and end_ns else None
    block = _block_bytes(events)
    period_ns = _burst_period_ns(at)
    verdict, reason = _verdict(len(steps), per_record, immediate, late, end_ns, block, period_ns)
    return StreamBuffering(
        events_per_record=per_record,
        immediate_share=round(immediate, 3),
        first_event_share=None if late is None else round(late, 3),
        block_bytes=block,
        head_with_first_event=head_with_first_event,
        burst_period_ns=period_ns,
        verdict=verdict,
        reason=reason,
    )


def _verdict(
    count: int,
    per_record: float | None,
    immediate: float,
    late: float | None,
    end_ns: int | None,
    block: int | None,
    period_ns: int | None,
) -> tuple[Delivery, str]:
    if count < FEWEST_EVENTS:
        return Delivery.TOO_SHORT, f"{count} events, {FEWEST_EVENTS} are needed"
    slow = end_ns is None or count * NS_PER_S < MOST_EVENTS_PER_S * end_ns
    crowded = slow and immediate > IMMEDIATE_SHARE
    if late is not None and end_ns is not None and late > LATE_FIRST_SHARE and end_ns > LONG_STREAM_NS:
        return Delivery.BUFFERED, f"the first event came after {late:.0%} of the time"
    share = f"{immediate:.0%} of the events came together with the one before"
    if crowded and block is not None:
        return Delivery.BUFFERED, f"{share}, in records of just under {block} octets"
    if period_ns is not None:
        return Delivery.BURSTY, f"bursts every {format_duration(period_ns)}"
    if crowded and per_record is not None and per_record >= MANY_PER_RECORD:
        return Delivery.BUFFERED, f"{share}, {per_record:.1f} in each record"
    return Delivery.FLOWING, f"{1 - immediate:.0%} of the events came by themselves"


def events_per_record(events: Sequence[StreamEvent]) -> float | None:
    """Pings and comments come on a schedule of their own."""
    carried = [e.record for e in events if e.record is not None and e.kind not in SIGNS_OF_LIFE]
    return round(len(carried) / len(set(carried)), 3) if carried else None


def _block_bytes(events: Sequence[StreamEvent]) -> int | None:
    """The buffer under whose size most octets came; None where there is no such size. The last record is what was left."""
    sizes = {e.record: e.record_bytes for e in events if e.record is not None and e.record_bytes}
    inner = [size for record, size in sizes.items() if record != max(sizes)]
    if len(inner) < 2:
        return None
    hits = Counter(b for size in inner for b in BUFFERS if _JUST_UNDER * b <= size <= b + _FRAMING_BYTES)
    block, count = hits.most_common(1)[0] if hits else (0, 0)
    return block if count >= _BLOCKS_SHARE * len(inner) else None


def _burst_period_ns(at: Sequence[int]) -> int | None:
    """Median time between the beginnings of bursts, where they are regular; None without at least three of them."""
    begins, counts = [at[0]], [1]
    for earlier, later in pairwise(at):
        if later - earlier >= TOGETHER_NS:
            begins.append(later)
            counts.append(1)
        else:
            counts[-1] += 1
    periods = [later - earlier for earlier, later in pairwise(begins)]
    if len(begins) < _FEWEST_BURSTS or len(at) < _BURST_OF * len(begins):
        return None
    import statistics  # loads much, and few streams come this far

    spread = statistics.pstdev(periods) / statistics.fmean(periods)
    return round(median(periods)) if spread < _REGULAR else None


def burst_factor(events: Sequence[StreamEvent]) -> float | None:
    """Events that carry the answer forward per arrival; None for fewer than two of them."""
    at = [e.deliverable_at for e in progress(events)]
    if len(at) < 2:
        return None
    arrivals = 1 + sum(later - earlier >= TOGETHER_NS for earlier, later in pairwise(at))
    return round(len(at) / arrivals, 3)
