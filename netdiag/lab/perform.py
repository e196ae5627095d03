"""Carrying out an answer: wait, write, stamp, break off where the knobs say so. The protocol's framing is behind ``Sink``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from netdiag.lab.answers import Answer
from netdiag.lab.behaviour import Behaviour
from netdiag.lab.clock import Stamp, ns, until
from netdiag.lab.link import Sent, joined, place
from netdiag.lab.schedule import Piece
from netdiag.lab.truth import TruthLog


class BrokenOff(Exception):
    """The answer ended early, on purpose; the connection is to be left as it is."""


class Sink(Protocol):
    """Where an answer goes: an HTTP/1 connection or an HTTP/2 stream."""

    async def interim(self, status: int) -> Sent:
        """Write a 1xx response."""

    async def head(self, answer: Answer, *, ends: bool) -> Sent:
        """Write the final head; ``ends`` when nothing follows it."""

    async def data(self, data: bytes, *, last: bool) -> Sent:
        """Write body octets; ``last`` when no more will follow."""

    async def finish(self) -> Sent | None:
        """Write what ends the body; None when the body's own octets were its end."""

    async def break_off(self, rest: bytes, *, reset: bool, inside_record: bool) -> Sent:
        """Reset or close before ``rest`` is out (a part of it when ``inside_record``); what was written to say so, if anything."""


@dataclass(slots=True)
class _Breaker:
    """Counts body octets towards the knobs that interrupt a body."""

    behaviour: Behaviour
    written_bytes: int = 0

    def room(self) -> int | None:
        """Octets left before the next interruption; None when there is none."""
        behaviour = self.behaviour
        marks = (behaviour.reset_after_bytes, behaviour.truncate_after_bytes, behaviour.stall_after_bytes)
        ahead = [m - self.written_bytes for m in marks if m is not None and m >= self.written_bytes]
        return min(ahead, default=None)

    @property
    def resets(self) -> bool:
        return self.behaviour.reset_after_bytes == self.written_bytes

    @property
    def truncates(self) -> bool:
        return self.behaviour.truncate_after_bytes == self.written_bytes

    @property
    def stalls(self) -> bool:
        return self.behaviour.stall_after_bytes == self.written_bytes and self.behaviour.stall_ms > 0


class Performance:
    """One answer being given."""

    def __init__(
        self,
        answer: Answer,
        sink: Sink,
        log: TruthLog,
        *,
        connection: int,
        request: int,
        tcp_facts: Callable[[], dict[str, int]] | None = None,
    ) -> None:
        """``connection`` and ``request`` number the rows; ``tcp_facts`` adds the sender's state to each event."""
        self._tcp_facts = tcp_facts or dict
        self._answer = answer
        self._sink = sink
        self._log = log
        self._ids = {"connection": connection, "request": request}
        self._breaker = _Breaker(answer.behaviour)
        self._total_bytes = answer.body_bytes
        self._shift_ns = 0
        self._stalled = False

    async def give(self, anchor: Stamp) -> None:
        """From the last request octet (``anchor``) to the end. Raises BrokenOff, or PeerGone when the client has left."""
        answer = self._answer
        for interim in answer.interim:
            await until(anchor.after(interim.due_ns))
            sent = await self._sink.interim(interim.status)
            self._row("interim", sent.at, status=interim.status, **place(sent))
        due = anchor.after(answer.head_due_ns)
        await until(due)
        if answer.behaviour.reset_after_bytes == 0:
            await self._break_off(b"", reset=True)
        sent = await self._sink.head(answer, ends=not answer.pieces)
        self._row(
            "headers", sent.at, status=answer.status, framing=answer.framing, scheduled_at=due.wall_ns, **place(sent)
        )
        await self._body(anchor, sent)

    def note(self, kind: str, at: Stamp, **facts: object) -> None:
        """A row of the truth about this request."""
        self._row(kind, at.wall_ns, **facts)

    async def _body(self, anchor: Stamp, last: Sent) -> None:
        for index, piece in enumerate(self._answer.pieces):
            due = anchor.after(piece.due_ns + self._shift_ns)
            await until(due)
            last = await self._piece(index, piece, due)
        await self._interrupt(b"")
        ended = await self._sink.finish() if self._answer.pieces else None
        last = ended or last
        self._row("response-last", last.at, body_bytes=self._breaker.written_bytes, **place(last))

    async def _piece(self, index: int, piece: Piece, due: Stamp) -> Sent:
        parts, rest = list[Sent](), piece.data
        while not parts or rest:
            try:
                await self._interrupt(rest)
            except BrokenOff:
                if parts:
                    self._event(index, piece, due, joined(parts), len(piece.data) - len(rest))
                raise
            room = self._breaker.room()
            part = rest if not room else rest[:room]
            last = self._breaker.written_bytes + len(part) == self._total_bytes
            parts.append(await self._sink.data(part, last=last))
            self._breaker.written_bytes += len(part)
            rest = rest[len(part) :]
        self._event(index, piece, due, joined(parts), len(piece.data))
        return parts[-1]

    def _event(self, index: int, piece: Piece, due: Stamp, sent: Sent, size: int) -> None:
        facts = {"event": piece.kind, "scheduled_at": due.wall_ns, "size_bytes": size}
        self._row("event", sent.at, index=index, **facts, **place(sent), **self._tcp_facts())

    async def _interrupt(self, rest: bytes) -> None:
        breaker = self._breaker
        if breaker.stalls and not self._stalled:
            self._stalled = True
            pause_ns = ns(breaker.behaviour.stall_ms)
            now = Stamp.now()
            self._row("fault", now.wall_ns, fault="stall", duration_ns=pause_ns)
            self._shift_ns += pause_ns
            await until(now.after(pause_ns))
        if breaker.resets or breaker.truncates:
            await self._break_off(rest, reset=breaker.resets)

    async def _break_off(self, rest: bytes, *, reset: bool) -> None:
        inside = self._answer.behaviour.cut_record
        sent = await self._sink.break_off(rest, reset=reset, inside_record=inside)
        fault = "reset" if reset else "truncate"
        self._row("fault", sent.at, fault=fault, body_bytes=self._breaker.written_bytes, **place(sent))
        raise BrokenOff

    def _row(self, kind: str, at: int, **facts: object) -> None:
        self._log.add(kind, self._ids["connection"], at=at, request=self._ids["request"], **facts)
