"""Handshake messages taken out of records (RFC 8446 section 5.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

LARGEST_MESSAGE = 256 * 1024
"""Octets of one handshake message that netdiag is willing to collect (certificate chains of real servers stay below 64 KiB)."""


Mark = TypeVar("Mark")


class Assembler(Generic[Mark]):
    """Turns the contents of handshake records into messages; a message may span records and a record may hold several."""

    __slots__ = ("_needed", "_pending", "damage", "started")

    def __init__(self) -> None:
        self._pending = bytearray()
        self._needed = 4
        """Octets that must be pending before there is anything to do."""
        self.damage: str | None = None
        """Why no further message will come; None while all is well."""
        self.started: Mark | None = None
        """The mark given with the fragment in which the message being returned began."""

    @property
    def partial(self) -> bool:
        """Whether a message has begun and is not complete."""
        return bool(self._pending)

    def feed(self, fragment: bytes, mark: Mark | None = None) -> Iterator[tuple[int, bytes]]:
        """Messages that this fragment completes, as (type, body)."""
        if self.damage:
            return
        data = fragment
        if self._pending:
            self._pending += fragment
            if len(self._pending) < self._needed:
                return
            data = bytes(self._pending)
            self._pending.clear()
        else:
            self.started = mark
        yield from self._messages(data, mark)

    def _messages(self, data: bytes, mark: Mark | None) -> Iterator[tuple[int, bytes]]:
        at, end = 0, len(data)
        self._needed = 4
        while at + 4 <= end:
            length = int.from_bytes(data[at + 1 : at + 4], "big")
            if length > LARGEST_MESSAGE:
                self.damage = f"handshake message of type {data[at]} claims {length} octets"
                return
            start, stop = at + 4, at + 4 + length
            if stop > end:
                self._needed = 4 + length
                break
            yield data[at], data[start:stop]
            self.started = mark
            at = stop
        self._pending += data[at:]

    def reset(self) -> None:
        """Forget a message that can no longer be completed because octets are missing."""
        self._pending.clear()
        self._needed = 4
        self.damage = None


def message_header(kind: int, body: bytes) -> bytes:
    """The four octets before a message's body, as they enter the transcript hash."""
    return bytes((kind,)) + len(body).to_bytes(3, "big")
