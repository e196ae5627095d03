"""Whether an answer has begun to say something: the limit for the first event ends there."""

from __future__ import annotations

from collections.abc import Mapping

from netdiag.protocols.content_coding import ContentDecoder, codings_of, obstacle
from netdiag.protocols.sse import EventStream


class FirstEvent:
    """Looks at the pieces of one body. In a stream of events a ping or comment is a sign of life, not the answer; any other content counts.

    Behind a content coding that cannot be undone every octet counts.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        codings = codings_of(headers.get("content-encoding"))
        readable = kind == "text/event-stream" and obstacle(codings) is None
        self._events = EventStream() if readable else None
        self._decoder = ContentDecoder(codings) if readable and codings else None

    def is_in(self, piece: bytes) -> bool:
        """Whether these octets complete the first event."""
        if self._events is None:
            return bool(piece)
        content = piece if self._decoder is None else self._decoder.feed(piece)
        if self._decoder is not None and self._decoder.failed is not None:
            return True
        return any(not event.comment and event.type != "ping" for event in self._events.feed(content))
