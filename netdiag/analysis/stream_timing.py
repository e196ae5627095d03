"""Times of a streamed answer (streaming.md): four firsts, the gaps between token-bearing events, and the logical end."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from netdiag.protocols.turn import Turn
from netdiag.records.stream import EventKind, StreamEvent, StreamTiming

TOKEN_BEARING = frozenset({EventKind.TEXT, EventKind.REASONING, EventKind.TOOL, EventKind.REFUSAL})
"""Non-empty text in any channel."""
SIGNS_OF_LIFE = frozenset({EventKind.COMMENT, EventKind.PING})
"""They prove that the path is alive and are no event of the answer."""


def stream_timing(turn: Turn) -> StreamTiming | None:
    """None for an answer that is no stream of events. Counts from the request's first octet sent; without that, firsts are None."""
    events = turn.events
    if not events:
        return None
    base = None if turn.request_first is None else turn.request_first.seen_at
    tokens = [e for e in events if e.kind in TOKEN_BEARING]

    def since(event: StreamEvent | None) -> int | None:
        return None if event is None or base is None else event.deliverable_at - base

    first_byte = turn.response_first
    return StreamTiming(
        api=turn.stream_api,
        first_byte_ns=None if first_byte is None or base is None else first_byte.deliverable_at - base,
        first_event_ns=since(next((e for e in events if e.kind not in SIGNS_OF_LIFE), None)),
        first_token_ns=since(tokens[0] if tokens else None),
        first_visible_ns=since(next((e for e in tokens if e.kind is EventKind.TEXT), None)),
        last_content_ns=since(tokens[-1] if tokens else None),
        logical_end_ns=since(next((e for e in events if e.kind is EventKind.DONE), None)),
        events=len(events),
        token_events=len(tokens),
        gaps_ns=_gaps_ns(tokens),
        tokens=turn.tokens,
        chunks=len({(e.deliverable_at, e.packet) for e in events}),
        timeline=tuple(events),
    )


def _gaps_ns(tokens: Sequence[StreamEvent]) -> tuple[int, ...]:
    return tuple(b.deliverable_at - a.deliverable_at for a, b in pairwise(tokens))
