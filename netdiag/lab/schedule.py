"""From knobs to a schedule: which octets are due when, decided before the first of them is written."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from netdiag.errors import UsageError
from netdiag.lab.behaviour import Behaviour
from netdiag.lab.clock import ns
from netdiag.lab.coding import Packer
from netdiag.lab.events import KINDS, EventShape


@dataclass(frozen=True, slots=True)
class Piece:
    """Some octets of a body and when they are due, counted from the last request octet."""

    due_ns: int
    kind: str
    data: bytes


def plain(body: bytes, behaviour: Behaviour) -> list[Piece]:
    """A body in ``body_pieces`` of equal size over ``body_ms``; the first leaves with the head. Nothing for an empty body."""
    if not body:
        return []
    count = min(behaviour.body_pieces, len(body))
    edges = [len(body) * i // count for i in range(count + 1)]
    step_ns = ns(behaviour.body_ms) // max(1, count - 1)
    start_ns = ns(behaviour.wait_ms)
    return [Piece(start_ns + i * step_ns, "body", body[edges[i] : edges[i + 1]]) for i in range(count)]


def events(behaviour: Behaviour, shape: EventShape, rng: random.Random) -> list[Piece]:
    """All events of a streamed answer in order of time."""
    timed = _exact(behaviour) if behaviour.schedule else _regular(behaviour, rng)
    if behaviour.ping_ms:
        timed = _with_pings(timed, ns(behaviour.ping_ms))
    return [Piece(at, kind, shape.make(kind, pad_to_bytes=size)) for at, kind, size in timed]


_Timed = tuple[int, str, int | None]


def _exact(behaviour: Behaviour) -> list[_Timed]:
    start_ns = ns(behaviour.wait_ms)
    out: list[_Timed] = []
    for item in (behaviour.schedule or "").split(","):
        at, _, rest = item.strip().partition(":")
        kind, _, size = rest.partition(":")
        if kind not in KINDS:
            raise UsageError(
                f"schedule: {item!r} is not TIME:KIND or TIME:KIND:OCTETS", advice="kinds: " + ", ".join(KINDS)
            )
        try:
            out.append((start_ns + ns(float(at)), kind, int(size) if size else None))
        except ValueError:
            raise UsageError(f"schedule: {item!r} has a time or size that is no number") from None
    return sorted(out, key=lambda timed: timed[0])


def _regular(behaviour: Behaviour, rng: random.Random) -> list[_Timed]:
    head_ns = ns(behaviour.wait_ms)
    first_ns = head_ns if behaviour.first_event_ms is None else max(head_ns, ns(behaviour.first_event_ms))
    gap_ns = ns(behaviour.gap_ms)
    out: list[_Timed] = [(head_ns, "role", None)] if behaviour.role_first else []
    total = behaviour.reasoning + behaviour.events
    last_ns = first_ns
    for i in range(total):
        text = i - behaviour.reasoning
        at = first_ns + _released(i, behaviour.burst) * gap_ns + round(rng.random() * ns(behaviour.jitter_ms))
        if behaviour.pause_after is not None and text >= behaviour.pause_after:
            at += ns(behaviour.pause_ms)
        last_ns = max(last_ns, at)
        if behaviour.error_after is not None and text >= behaviour.error_after:
            return [*out, (last_ns, "error", None)]
        out.append((last_ns, "reasoning" if text < 0 else "text", behaviour.event_bytes))
    if behaviour.usage:
        out.append((last_ns, "usage", None))
    if behaviour.done:
        out.append((last_ns, "done", None))
    return out


def _released(index: int, burst: int) -> int:
    """An event of a burst leaves when the last of its group would have been made."""
    return index if burst == 1 else (index // burst + 1) * burst - 1


def _with_pings(timed: list[_Timed], every_ns: int) -> list[_Timed]:
    """Pings fill the silences: the first comes ``every_ns`` after the previous event."""
    out: list[_Timed] = []
    for event in timed:
        at = (out[-1][0] if out else 0) + every_ns
        while out and at < event[0]:
            out.append((at, "ping", None))
            at += every_ns
        out.append(event)
    return out


def compressed(pieces: Iterable[Piece], packer: Packer, *, flush: bool) -> Iterator[Piece]:
    """The pieces through a content coding; without ``flush`` most of them come out only at the end."""
    last = None
    for piece in pieces:
        data = packer.pack(piece.data) + (packer.flush() if flush else b"")
        last = piece
        if data:
            yield replace(piece, data=data)
    if last is not None:
        yield Piece(last.due_ns, "coding-end", packer.end())


def buffered(pieces: Iterable[Piece], behaviour: Behaviour) -> Iterator[Piece]:
    """What a buffering hop makes of them: blocks by size, by time, or everything at the end; unchanged without such a hop."""
    if not behaviour.buffer_all and behaviour.buffer_bytes is None and behaviour.buffer_ms is None:
        yield from pieces
        return
    held: list[Piece] = []
    limit = None if behaviour.buffer_all else behaviour.buffer_bytes
    period_ns = None if behaviour.buffer_all or behaviour.buffer_ms is None else ns(behaviour.buffer_ms)
    for piece in pieces:
        while held and period_ns is not None and piece.due_ns > held[0].due_ns + period_ns:
            yield _block(held, held[0].due_ns + period_ns)
            held = []
        held.append(piece)
        while limit is not None and sum(len(p.data) for p in held) >= limit:
            data = b"".join(p.data for p in held)
            yield Piece(piece.due_ns, "block", data[:limit])
            held = [replace(piece, data=data[limit:])] if len(data) > limit else []
    if held:
        yield _block(held, held[-1].due_ns)


def _block(held: list[Piece], due_ns: int) -> Piece:
    return Piece(due_ns, "block" if len(held) > 1 else held[0].kind, b"".join(p.data for p in held))
