"""HTTP/2 by columns where that pays and holds, frame by frame where it does not. What either says is the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from netdiag.protocols.conversation import Conversation
from netdiag.protocols.http2 import frame_by_frame as http2
from netdiag.protocols.http2 import frames as h2
from netdiag.protocols.http2.columns import regular as h2_regular
from netdiag.wire.chunk import Chunk

WORTH_BYTES = 4096
"""Octets of the client below which there are too few requests: columns cost some hundred microseconds before the first."""
WORTH_REQUESTS = 16
"""So many of those octets' frames must be requests: a download's client says as much by granting windows, and has nothing to gain."""
_KEPT_BYTES = 1 << 20


def decode(client: Iterable[Chunk], server: Iterable[Chunk]) -> Conversation | None:
    """All turns of one connection. None where the octets have to be heard once more, by ``http2.decode``: they are no longer here."""
    asked, answered = _Kept(client), _Kept(server)
    if asked.reaches(WORTH_BYTES) and _requests_in(asked.first(WORTH_BYTES)) >= WORTH_REQUESTS:
        said = h2_regular.decode(asked, answered)
        if said is not None:
            return said
    return http2.decode(asked.again(), answered.again()) if asked.whole and answered.whole else None


def _requests_in(octets: bytes) -> int:
    """HEADERS frames after the client's preface."""
    position, found = len(h2.PREFACE), 0
    while position + h2.FRAME_HEADER.size <= len(octets):
        high, low, type_, _, _ = h2.FRAME_HEADER.unpack_from(octets, position)
        position += h2.FRAME_HEADER.size + (high << 8 | low)
        found += type_ == h2.FrameType.HEADERS
    return found


class _Kept:
    """Chunks that stay while they are few."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._rest = iter(chunks)
        self._kept: list[Chunk] = []
        self._bytes = 0
        self.whole = True
        """Nothing that was taken is lost."""

    def reaches(self, size: int) -> bool:
        """Whether there are at least so many octets."""
        while self._bytes < size:
            chunk = next(self._rest, None)
            if chunk is None:
                return False
            self._keep(chunk)
        return True

    def first(self, size: int) -> bytes:
        """So many of the octets that were taken."""
        return b"".join(chunk.data for chunk in self._kept)[:size]

    def again(self) -> Iterator[Chunk]:
        """From the first chunk on; only while it is ``whole``."""
        return chain(self._kept, self._rest)

    def __iter__(self) -> Iterator[Chunk]:
        yield from tuple(self._kept)
        for chunk in self._rest:
            if self.whole:
                self._keep(chunk)
            yield chunk

    def _keep(self, chunk: Chunk) -> None:
        self._kept.append(chunk)
        self._bytes += len(chunk.data)
        if self._bytes > _KEPT_BYTES:
            self._kept, self.whole = [], False
