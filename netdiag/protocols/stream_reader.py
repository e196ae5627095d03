"""Pulls octets out of one direction's chunks and knows the moment of what was read last. A gap stops every read until it is crossed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from netdiag.wire.chunk import Chunk, Moment


class Sink(Protocol):
    """Takes the octets of a body, as they come."""

    def feed(self, octets: bytes, moment: Moment) -> None:
        """``moment`` is that of the last octet."""


class StreamReader:
    """One direction of a connection. Reads return what there is up to a gap or the end; ``gap`` and ``ended`` tell which it was."""

    __slots__ = ("_chunk", "_chunks", "_data", "_first", "_last", "_next", "_pos", "crossed_gap", "ended", "gap")

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._chunks = iter(chunks)
        self._chunk: Chunk | None = None
        self._next: Chunk | None = None
        self._data = b""
        self._pos = 0
        self._first: Moment | None = None
        self._last: Moment | None = None
        self.gap: int | None = None
        """Octets missing before the next one (negative: number not known); None where there is no gap."""
        self.ended = False
        self.crossed_gap = False
        """A gap was crossed; whoever cares sets it back."""

    def more(self) -> bool:
        """Whether an octet can be read now. False at a gap and at the end."""
        while self._pos >= len(self._data):
            if self.gap is not None or self.ended:
                return False
            chunk = next(self._chunks, None)
            if chunk is None:
                self.ended = True
                return False
            if chunk.missing_before:
                self.gap = chunk.missing_before
                self._next = chunk
                return False
            self._enter(chunk)
        return True

    def cross_gap(self) -> None:
        """Go on after the missing octets."""
        if self._next is not None:
            self._enter(self._next)
            self._next = None
        self.gap = None
        self.crossed_gap = True

    def _enter(self, chunk: Chunk) -> None:
        self._chunk = chunk
        self._data = chunk.data
        self._pos = 0
        self._first = self._last = None

    @property
    def offset(self) -> int:
        """Stream offset of the next octet (after ``more()``)."""
        return self._chunk.offset + self._pos if self._chunk else 0

    @property
    def packet(self) -> int | None:
        """Packet of the next octet."""
        return self._chunk.first_packet if self._chunk else None

    @property
    def at_chunk_start(self) -> bool:
        """Messages begin at segment and record boundaries; after a loss only those are trusted."""
        return self._pos == 0

    def first_moment(self) -> Moment:
        """Of the next octet, as the beginning of something: inside a record of several segments the earliest bound."""
        if self._first is None:
            self._first = self._current().first_moment()
        return self._first

    def last_moment(self) -> Moment:
        """Of the octet read last, as the end of something: inside a record of several segments the latest bound."""
        if self._last is None:
            chunk = self._current()
            whole = chunk.first_seen_at == chunk.last_seen_at
            self._last = self.first_moment() if whole else chunk.last_moment()
        return self._last

    def _current(self) -> Chunk:
        if self._chunk is None:
            raise RuntimeError("no octet was read yet")
        return self._chunk

    def rest_of_chunk(self) -> bytes:
        """What is left of the current chunk, without reading it."""
        return self._data[self._pos :] if self._pos else self._data

    def at_hand(self) -> tuple[bytes, int]:
        """The current chunk, and the place in it of the next octet."""
        return self._data, self._pos

    def go_to(self, place: int) -> None:
        """Everything before that place of the current chunk has been read."""
        self._pos = place

    def next_octet(self) -> int:
        """The next octet (after ``more()``), without reading it."""
        return self._data[self._pos]

    def matches(self, pattern: re.Pattern[bytes]) -> bool:
        """Whether what is left of the current chunk begins so."""
        return pattern.match(self._data, self._pos) is not None

    def take_head(self) -> bytes | None:
        """Octets up to and with the first empty line, when the current chunk has it."""
        end = end_of_head(self._data, self._pos)
        return self.take(end - self._pos) if end >= 0 else None

    def skip_any(self, octets: bytes) -> None:
        """Leave out what the current chunk has of these octets next."""
        data, pos = self._data, self._pos
        while pos < len(data) and data[pos] in octets:
            pos += 1
        self._pos = pos

    def take(self, count: int) -> bytes:
        """The next ``count`` octets of the current chunk (fewer at its end)."""
        start = self._pos
        piece = self._data[start : start + count]
        self._pos = start + len(piece)
        return piece

    def drop_chunk(self) -> int:
        """Leave the rest of the current chunk unread; how many octets that were."""
        left = len(self._data) - self._pos
        self._pos = len(self._data)
        return left

    def read_until(self, mark: bytes, limit: int) -> bytes | None:
        """Octets up to and with ``mark``; None when gap, end or ``limit`` come first (what was there is read)."""
        if not self.more():
            return None
        end = self._data.find(mark, self._pos)
        if end >= 0:
            return self.take(end + len(mark) - self._pos)
        return self._read_until_slowly(mark, limit)

    def _read_until_slowly(self, mark: bytes, limit: int) -> bytes | None:
        held = bytearray()
        while len(held) <= limit and self.more():
            searched = max(0, len(held) - len(mark) + 1)
            before = len(held)
            held += self.rest_of_chunk()
            end = held.find(mark, searched)
            if end >= 0:
                self.take(end + len(mark) - before)
                return bytes(held[: end + len(mark)])
            self.drop_chunk()
        return None

    def skip(self, count: int, sink: Sink | None = None) -> tuple[int, int]:
        """Read ``count`` octets without keeping them; a gap of known size inside them is crossed. Returns (octets read, octets missing)."""
        read = missing = 0
        while read + missing < count:
            if not self.more():
                if self.gap is None or not 0 < self.gap <= count - read - missing:
                    break
                missing += self.gap
                self.cross_gap()
                continue
            left = count - read - missing
            if sink is None:
                step = min(left, len(self._data) - self._pos)
                self._pos += step
            else:
                piece = self.take(left)
                step = len(piece)
                sink.feed(piece, self.last_moment())
            read += step
        return read, missing

    def rest(self) -> Iterator[Chunk]:
        """Everything that was not read, as chunks. The reader must not be used afterwards."""
        if self._chunk is not None and self._pos < len(self._data):
            yield replace(
                self._chunk, data=self._data[self._pos :], offset=self._chunk.offset + self._pos, missing_before=0
            )
        if self._next is not None:
            yield self._next
        yield from self._chunks


def end_of_head(octets: bytes | bytearray, start: int) -> int:
    """Offset after the first empty line, -1 when there is none. Line ends are CRLF or bare LF, also mixed (RFC 9112 section 2.2)."""
    end = octets.find(b"\n\r\n", start)
    bare = octets.find(b"\n\n", start, end + 1 if end >= 0 else len(octets))
    if bare >= 0:
        return bare + 2
    return end + 3 if end >= 0 else -1
