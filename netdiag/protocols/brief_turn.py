"""What is told of a conversation in brief: which octets are whose, and nothing that they say."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from netdiag.protocols.first_events import FirstEvents
from netdiag.wire.tables import NONE

KEPT = 1024
"""So many different heads are remembered: they repeat from connection to connection."""


class Octets(NamedTuple):
    """All octets of one direction, from its first one on."""

    data: bytes
    ends: Sequence[int]
    """Where each chunk of them ends."""

    def chunk(self, offset: int) -> int:
        """The chunk with the octet at an offset."""
        return bisect_right(self.ends, offset)

    def feed(self, firsts: FirstEvents, begin: int, end: int) -> None:
        """Content of an answer, piece by piece as it came; the rest at once when nothing more can be told than errors."""
        piece = self.chunk(begin)
        while begin < end and not firsts.told:
            stop = min(end, self.ends[piece])
            firsts.feed(self.data[begin:stop], piece)
            begin, piece = stop, piece + 1
        if begin < end:
            firsts.search(self.data[begin:end])


class BriefTurn(NamedTuple):
    """One request and its answer: the chunks of the client's, and of the server's octets with the first and the last octet of each, and
    those in which the first events ended (NONE without)."""

    protocol: str
    status: int
    marked: bool
    """As ``retry_marks.bears_mark``."""
    request_first: int
    request_last: int
    response_first: int
    response_last: int
    first_event: int = NONE
    first_token: int = NONE
    first_visible: int = NONE

    @property
    def answer(self) -> tuple[int, int, int, int, int]:
        """All of the server's."""
        return self[5:]


class Brief(NamedTuple):
    """All turns of one connection, in the order of their requests."""

    turns: list[BriefTurn]
    settings: int = NONE
    """HTTP/2: the chunk that completes the server's first SETTINGS."""
