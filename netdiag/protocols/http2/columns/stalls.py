"""Who waited for whose flow-control window on a regular HTTP/2 connection (RFC 9113 section 5.2).

Where columns show that every window always had room, nobody did. Else the ledger is kept, with the frames that count for it taken in the order
of both directions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from netdiag.protocols.conversation import CLIENT, SERVER, WindowStall
from netdiag.protocols.http2.columns.paired import FAR, Paired
from netdiag.protocols.http2.columns.room import Granted, Initial, Sent, always_room
from netdiag.protocols.http2.columns.turns import NearMoments
from netdiag.protocols.http2.frames import Flag, FrameType
from netdiag.protocols.http2.windows import WindowLedger
from netdiag.wire.tables import NONE, Int64

__all__ = ["Initial", "stalls_of"]


def stalls_of(pair: Paired, initial: tuple[Sequence[Initial], Sequence[Initial]]) -> list[WindowStall]:
    """``initial`` is by sender: what each one's receiver announced, in order."""
    sent = _sent(pair, CLIENT), _sent(pair, SERVER)
    granted = _granted(pair, CLIENT), _granted(pair, SERVER)
    if all(always_room(sent[side], granted[side], initial[side]) for side in (CLIENT, SERVER)):
        return []
    ledger = WindowLedger()
    events = [e for side in (CLIENT, SERVER) for e in _events(pair, side, sent[side], granted[side], initial[side])]
    events += _closings(pair)
    events.sort(key=itemgetter(0, 1))
    moments = [NearMoments(direction.times) for direction in pair.sides]
    for event in events:
        _enter(ledger, pair, moments, event)
    for place in np.flatnonzero(pair.closed == FAR).tolist():
        ledger.close(int(pair.streams.ids[place]))
    ledger.finish()
    return ledger.stalls


def _sent(pair: Paired, sender: int) -> Sent:
    frames = pair.sides[sender].frames
    rows = np.flatnonzero((frames.type == FrameType.DATA) & (frames.length > 0))
    return Sent(
        row=rows,
        at=pair.order.at(sender, rows),
        place=pair.streams.places_of(frames.stream[rows]),
        length=frames.length[rows],
        ended=frames.flags[rows] & Flag.END_STREAM != 0,
    )


def _granted(pair: Paired, sender: int) -> Granted:
    peer = pair.sides[1 - sender]
    rows, increment = peer.updates
    streams = peer.frames.stream[rows]
    return Granted(
        row=rows,
        at=pair.order.at(1 - sender, rows),
        place=pair.streams.places_of(streams),
        is_connection=streams == 0,
        increment=increment,
    )


_DATA, _CLOSE, _UPDATE, _INITIAL = range(4)


class _Event(NamedTuple):
    """Of one sender's windows. What a frame does comes before what its end does."""

    at: int
    kind: int
    sender: int
    row: int
    """Of the frame; for a closing its stream, for a new initial window its size."""
    stream_id: int = 0
    octets: int = 0
    owes: bool = False
    others_owe: bool = False
    initial: Initial | None = None


def _events(pair: Paired, sender: int, sent: Sent, granted: Granted, initial: Sequence[Initial]) -> Iterator[_Event]:
    streams = pair.sides[sender].frames.stream[sent.row]
    others = _unfinished(pair, sender, sent.at) > sent.ended
    columns = (sent.at, sent.row, streams, sent.length, ~sent.ended, others)
    for at, row, stream_id, length, owes, others_owe in zip(*(c.tolist() for c in columns), strict=True):
        yield _Event(at, _DATA, sender, row, stream_id, length, owes, others_owe)
    streams = pair.sides[1 - sender].frames.stream[granted.row]
    updates = (granted.at, granted.row, streams, granted.increment)
    for at, row, stream_id, increment in zip(*(c.tolist() for c in updates), strict=True):
        yield _Event(at, _UPDATE, sender, row, stream_id, increment)
    for one in initial:
        yield _Event(one.at, _INITIAL, sender, one.size, initial=one)


def _closings(pair: Paired) -> Iterator[_Event]:
    over = pair.closed != FAR
    for at, stream_id in zip(pair.closed[over].tolist(), pair.streams.ids[over].tolist(), strict=True):
        yield _Event(at, _CLOSE, CLIENT, NONE, stream_id)


def _unfinished(pair: Paired, sender: int, at: Int64) -> Int64:
    """How many streams had a message of this sender under way just before each instant."""
    said = pair.said[sender]
    begun = np.sort(pair.order.at(sender, said.head[said.head != NONE]))
    ended = np.sort(pair.order.at(sender, said.end[said.end != NONE]))
    count: Int64 = np.searchsorted(begun, at) - np.searchsorted(ended, at)
    return count


def _enter(ledger: WindowLedger, pair: Paired, moments: Sequence[NearMoments], event: _Event) -> None:
    sender = event.sender
    if event.kind == _CLOSE:
        ledger.close(event.stream_id)
    elif event.initial is not None:
        ledger.initial_window(sender, event.row, event.initial.moment)
    elif event.kind == _DATA:
        first = moments[sender].first(int(pair.order.first_chunk[sender][event.row]))
        last = moments[sender].last(int(pair.order.last_chunk[sender][event.row]))
        assert first is not None
        assert last is not None
        ledger.data(sender, event.stream_id, event.octets, first, last, owes=event.owes, others_owe=event.others_owe)
    else:
        last = moments[1 - sender].last(int(pair.order.last_chunk[1 - sender][event.row]))
        assert last is not None
        ledger.update(sender, event.stream_id, event.octets, last)
