"""Both directions of a regular HTTP/2 connection, stream by stream: what each asked and was answered, and when it was opened and closed."""

from __future__ import annotations

import numpy as np

from netdiag.plain import plain
from netdiag.protocols.conversation import CLIENT, SERVER
from netdiag.protocols.http2 import frames as h2
from netdiag.protocols.http2.columns.messages import Messages, messages
from netdiag.protocols.http2.columns.order import Order
from netdiag.protocols.http2.columns.tables import Direction
from netdiag.wire.tables import NONE, Int32, Int64

FAR = np.iinfo(np.int64).max
"""When what never happens does."""


class Streams:
    """The streams that the client opened, in their order."""

    def __init__(self, ids: Int64, asked: Direction, heads: Int64) -> None:
        self.ids = ids
        self._sections = asked.sections
        self._codes = asked.codes[heads]
        self._alternate = bool((ids == np.arange(1, 2 * len(ids), 2)).all())

    def __len__(self) -> int:
        return len(self.ids)

    def places_of(self, streams: Int32 | Int64) -> Int64:
        """NONE for streams that the client did not open."""
        if self._alternate:
            known = (streams & 1 == 1) & (streams <= self.ids[-1])
            return np.where(known, streams >> 1, NONE).astype(np.int64)
        places = np.minimum(np.searchsorted(self.ids, streams), len(self) - 1)
        return np.where(self.ids[places] == streams, places, NONE)

    def path_of(self, stream_id: int) -> str | None:
        """What was asked for."""
        place = int(self.places_of(np.array([stream_id]))[0])
        return None if place == NONE else self._sections[int(self._codes[place])].path


def streams_of(asked: Direction) -> Streams | None:
    """None where there are none, or identifiers do not ascend (RFC 9113 section 5.1.1)."""
    streams = asked.frames.stream[asked.frames.type == h2.FrameType.HEADERS].astype(np.int64)
    heads = np.arange(len(streams))
    if (np.diff(streams) <= 0).any():  # some have trailers
        heads = np.argsort(streams, kind="stable")
        heads = heads[np.diff(streams[heads], prepend=-1) > 0]
        streams = streams[heads]
    if not len(streams) or (np.diff(heads) <= 0).any() or (streams & 1 == 0).any():
        return None
    return Streams(streams, asked, heads)


@plain(frozen=True, slots=True, kw_only=True)
class Paired:
    """Both directions, and when each stream was opened and closed in their order."""

    sides: tuple[Direction, Direction]
    said: tuple[Messages, Messages]
    streams: Streams
    order: Order
    opened: Int64
    """When the request's HEADERS were complete, in the order of both directions."""
    closed: Int64
    """When both sides had ended; FAR where they did not."""


def paired(asked: Direction, answered: Direction, streams: Streams) -> Paired | None:
    """None where a stream's frames are not in order, or an answer came before its request."""
    interim = np.array([_is_interim(section.status) for section in answered.sections], np.bool_)
    requests = messages(asked, streams.places_of, len(streams))
    answers = messages(answered, streams.places_of, len(streams), interim)
    if requests is None or answers is None:
        return None
    order = Order(asked, answered)
    opened = order.at(CLIENT, requests.head)
    all_headers = np.flatnonzero(answered.frames.type == h2.FrameType.HEADERS)
    if (order.at(SERVER, all_headers) < opened[answers.headers_place]).any():
        return None
    over = (requests.end != NONE) & (answers.end != NONE)
    closed = np.maximum(order.at(CLIENT, requests.end), order.at(SERVER, answers.end))
    return Paired(
        sides=(asked, answered),
        said=(requests, answers),
        streams=streams,
        order=order,
        opened=opened,
        closed=np.where(over, closed, FAR),
    )


def _is_interim(status: int | None) -> bool:
    return status is not None and 100 <= status < 200 and status != 101
