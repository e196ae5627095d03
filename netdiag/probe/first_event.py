"""Whether an answer has begun to say something: the limit for the first event ends there."""

from __future__ import annotations

from collections.abc import Mapping

from netdiag.protocols.sse import EventStream


class FirstEvent:
    """Looks at the pieces of one body. In a stream of events a ping or comment is a sign of life, not the answer; any other content counts."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        readable = headers.get("content-encoding", "identity").strip().lower() in ("", "identity")
        self._events = EventStream() if kind == "text/event-stream" and readable else None

    def is_in(self, piece: bytes) -> bool:
        """Whether these octets complete the first event."""
        if self._events is None:
            return bool(piece)
        return any(not event.comment and event.type != "ping" for event in self._events.feed(piece))
