"""Whether the flow-control windows of a regular HTTP/2 connection always had room, by columns (RFC 9113 section 5.2).

Where one was nearly used up, ``windows`` keeps the ledger of who waited for whom.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from netdiag.plain import plain
from netdiag.protocols.http2.frames import DEFAULT_WINDOW
from netdiag.protocols.http2.windows import NEARLY_CLOSED
from netdiag.wire.chunk import Moment
from netdiag.wire.tables import Bool, Int64


class Initial(NamedTuple):
    """A SETTINGS_INITIAL_WINDOW_SIZE that the receiver announced."""

    at: int
    """In the order of both directions."""
    size: int
    moment: Moment


@plain(frozen=True, slots=True, kw_only=True)
class Sent:
    """DATA of one sender that is not empty, in order; ``at`` in the order of both directions."""

    row: Int64
    at: Int64
    place: Int64
    """Its stream."""
    length: Int64
    ended: Bool


@plain(frozen=True, slots=True, kw_only=True)
class Granted:
    """WINDOW_UPDATE frames of the receiver, in order."""

    row: Int64
    at: Int64
    place: Int64
    """Its stream; NONE for the connection or for a stream that nobody opened."""
    is_connection: Bool
    increment: Int64


def always_room(sent: Sent, granted: Granted, initial: Sequence[Initial]) -> bool:
    """Whether no sender can ever have been stopped. ``initial``: in order."""
    if not len(sent.at):
        return True
    return _connection_has_room(sent, granted) and _streams_have_room(sent, granted, initial)


def _connection_has_room(sent: Sent, granted: Granted) -> bool:
    at, increment = granted.at[granted.is_connection], granted.increment[granted.is_connection]
    opened = np.concatenate(([0], np.cumsum(increment)))[np.searchsorted(at, sent.at)]
    return bool((DEFAULT_WINDOW + opened - np.cumsum(sent.length) >= NEARLY_CLOSED).all())


def _streams_have_room(sent: Sent, granted: Granted, initial: Sequence[Initial]) -> bool:
    total = np.bincount(sent.place, sent.length)
    smallest = min([DEFAULT_WINDOW, *(one.size for one in initial)])
    large = np.flatnonzero(smallest - total < NEARLY_CLOSED)
    if not len(large):
        return True
    data, updates = np.isin(sent.place, large), np.isin(granted.place, large)
    at = np.concatenate((sent.at[data], granted.at[updates]))
    place = np.concatenate((sent.place[data], granted.place[updates]))
    used = np.concatenate((sent.length[data], -granted.increment[updates]))
    owes = np.concatenate((~sent.ended[data], np.zeros(np.count_nonzero(updates), np.bool_)))
    order = np.lexsort((at, place))
    at, place, used, owes = at[order], place[order], used[order], owes[order]
    spent = np.cumsum(used)
    first = np.flatnonzero(np.diff(place, prepend=-1))
    spent -= np.repeat(spent[first] - used[first], np.diff(np.append(first, len(place))))
    sizes = np.array([DEFAULT_WINDOW, *(one.size for one in initial)], np.int64)
    window = sizes[np.searchsorted(np.array([one.at for one in initial], np.int64), at)]
    return not (owes & (window - spent < NEARLY_CLOSED)).any()
