"""What one side of a regular HTTP/2 connection sent on each of its streams, as columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from netdiag.plain import plain
from netdiag.protocols.http2.columns.tables import Direction
from netdiag.protocols.http2.columns.walk import HEADER_BYTES
from netdiag.protocols.http2.frames import Flag, FrameType
from netdiag.wire.tables import NONE, Bool, Int32, Int64

PlacesOf = Callable[[Int32 | Int64], Int64]
"""The place of each stream identifier; NONE for one that nobody opened."""


@plain(frozen=True, slots=True, kw_only=True)
class Messages:
    """One row per stream. Frames are named by their rows; NONE where there is none."""

    head: Int64
    """HEADERS of the request, or of the final response."""
    trailers: Int64
    """The last HEADERS after it."""
    body_first: Int64
    """The first DATA that is not empty."""
    last: Int64
    """The last HEADERS or DATA."""
    end: Int64
    """The one with END_STREAM."""
    octets: Int64
    """Of all these frames, headers included."""
    body_bytes: Int64
    other_bytes: Int64
    """DATA octets of other streams between its first and last DATA."""
    interim: Int64
    """Not a column: HEADERS of interim responses, in order."""
    headers_place: Int64
    """Not a column: the stream of every HEADERS frame, in order."""


def messages(direction: Direction, places_of: PlacesOf, count: int, interim: Bool | None = None) -> Messages | None:
    """``interim`` says of each section whether it is one of an interim response (RFC 9110 section 15.2) unless it ends the stream.

    None where frames are not in the order HEADERS, DATA, trailers, the last of them with END_STREAM, or on streams that nobody opened.
    """
    frames = direction.frames
    headers, data = np.flatnonzero(frames.type == FrameType.HEADERS), np.flatnonzero(frames.type == FrameType.DATA)
    header_places, data_places = places_of(frames.stream[headers]), places_of(frames.stream[data])
    if (header_places < 0).any() or (data_places < 0).any():
        return None
    before_final = np.zeros(len(headers), np.bool_)
    if interim is not None:
        before_final = interim[direction.codes] & (frames.flags[headers] & Flag.END_STREAM == 0)
    head = _first(count, header_places[~before_final], headers[~before_final])
    late = (head[header_places] != NONE) & (headers > head[header_places])
    final = late | ~before_final
    if not _after_heads(data, head[data_places]):
        return None
    own_headers, own_places = headers[final], header_places[final]
    last = np.maximum(_last(count, own_places, own_headers), _last(count, data_places, data))
    rows, places = np.concatenate((own_headers, data)), np.concatenate((own_places, data_places))
    ending = frames.flags[rows] & Flag.END_STREAM != 0
    end = _last(count, places[ending], rows[ending])
    if np.count_nonzero(ending) != np.count_nonzero(end != NONE) or (last != end)[end != NONE].any():
        return None
    lengths = frames.length[data]
    some = lengths > 0
    body_bytes = _sums(count, data_places, lengths)
    return Messages(
        head=head,
        trailers=_last(count, header_places[late], headers[late]),
        body_first=_first(count, data_places[some], data[some]),
        last=last,
        end=end,
        octets=_sums(count, places, frames.length[rows] + HEADER_BYTES),
        body_bytes=body_bytes,
        other_bytes=_between(count, data_places, lengths) - body_bytes,
        interim=headers[~final],
        headers_place=header_places,
    )


def _after_heads(rows: Int64, heads: Int64) -> bool:
    return not ((heads == NONE) | (rows < heads)).any()


def _first(count: int, places: Int64, rows: Int64) -> Int64:
    """The first row of each place; rows ascend."""
    return _last(count, places[::-1], rows[::-1])


def _last(count: int, places: Int64, rows: Int64) -> Int64:
    """The last row of each place: of assignments to one place the last one stays."""
    found = np.full(count, NONE, np.int64)
    found[places] = rows
    return found


def _sums(count: int, places: Int64, values: Int64) -> Int64:
    return np.bincount(places, values, count).astype(np.int64)  # exact up to 2^53


def _between(count: int, places: Int64, lengths: Int64) -> Int64:
    """Octets of all streams from each one's first row to its last."""
    upto = np.concatenate(([0], np.cumsum(lengths)))
    rows = np.arange(len(places))
    first, last = _first(count, places, rows), _last(count, places, rows)
    return np.where(last == NONE, 0, upto[last + 1] - upto[first])
