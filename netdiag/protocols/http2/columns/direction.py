"""One direction of a regular HTTP/2 connection as columns: its chunks' times, its frames, what its header blocks say.

Octets are joined and read block by block, and nothing of them is kept but what frames say. Regular is what needs no state but header
compression: no octets missing, no padding, no CONTINUATION, no PUSH_PROMISE, no frame above the default size, and not millions of them.
All else is left to ``http2.decode``, which knows what to make of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import accumulate
from operator import attrgetter

import numpy as np

from netdiag.protocols.anomalies import AnomalyLog
from netdiag.protocols.event_body import EventBody, may_be_events, open_event_body
from netdiag.protocols.headers import Field, make_field
from netdiag.protocols.http2 import frames as h2
from netdiag.protocols.http2.columns.blocks import decoded
from netdiag.protocols.http2.columns.tables import ChunkTimes, Control, Direction, Frames
from netdiag.protocols.http2.columns.walk import HEADER_BYTES, frame_starts
from netdiag.protocols.http2.hpack_decoder import FieldBlock, HpackDecoder, HpackError
from netdiag.protocols.http2.section import Section, assemble
from netdiag.wire.chunk import Chunk
from netdiag.wire.octets import BIG32
from netdiag.wire.tables import NONE, Int64

BLOCK_BYTES = 1 << 20
MOST_FRAMES = 1 << 22
"""Each takes some sixty octets meanwhile, whatever it says; the decoder that takes one after the other needs none for most of them."""
_SHARED_SECTIONS = 4096
_PRIORITY_BYTES = 5
_HEADER = np.dtype([("length_type", BIG32), ("flags", "u1"), ("stream", BIG32)])
_T = h2.FrameType
_CONTROL = (_T.SETTINGS, _T.RST_STREAM, _T.GOAWAY)


def read_direction(
    chunks: Iterable[Chunk], *, is_client: bool, path_of: Callable[[int], str | None] | None = None
) -> Direction | None:
    """None where this direction is not regular; then no more of ``chunks`` is taken than was needed to see it.

    ``path_of`` says for which path a stream asked: its answer's content is read where that says anything.
    """
    reader = _Reader(is_client, path_of)
    block: list[Chunk] = []
    size = 0
    for chunk in chunks:
        if chunk.missing_before:
            return None
        block.append(chunk)
        size += len(chunk.data)
        if size >= BLOCK_BYTES:
            if not reader.take(block):
                return None
            block, size = [], 0
    return reader.finish() if not block or reader.take(block) else None


class _Block:
    """Chunks that are read together. Offsets count from the first chunk of all."""

    def __init__(self, chunks: list[Chunk], begin: int) -> None:
        self.chunks = chunks
        self.edges = list(accumulate((len(chunk.data) for chunk in chunks), initial=begin))
        self.begin, self.end = begin, self.edges[-1]

    def feed(self, body: EventBody, start: int, end: int) -> None:
        """What of the content from ``start`` to ``end`` is here, chunk by chunk."""
        start = max(start, self.begin)
        end = min(end, self.end)
        place = bisect_right(self.edges, start) - 1
        while start < end:
            chunk, at = self.chunks[place], self.edges[place]
            octets = chunk.data[start - at : end - at]
            if octets:
                body.feed(octets, chunk.last_moment())
            place += 1
            start = self.edges[place]


class _Reader:
    def __init__(self, is_client: bool, path_of: Callable[[int], str | None] | None) -> None:
        self._opening = h2.PREFACE if is_client else b""
        self._started = False
        self._path_of = path_of
        self._log = AnomalyLog("h2")
        self._size = 0  # octets taken
        self._next = 0  # where the next frame begins
        self._carry = b""  # octets before _size of a frame that is not whole
        self._data_stream = 0  # stream of the DATA frame that reaches beyond _size
        self._rows = 0
        self._times: list[Int64] = []
        self._frames: list[Frames] = []
        self._decoder: HpackDecoder[Field, int] = HpackDecoder(make_field, self._code)
        self._sections: list[Section] = []
        self._shared: dict[tuple[Field, ...], int] = {}
        self._may_be_events: list[bool] = []
        self._over_limit = False
        self._codes: list[Int64] = []
        self._updates: list[tuple[Int64, Int64]] = []
        self._controls: list[Control] = []
        self._bodies: dict[int, tuple[int, EventBody | None]] = {}

    def finish(self) -> Direction | None:
        """When all was taken. What is left of a frame that is not whole says nothing, but of DATA it does."""
        if not self._frames or self._next > self._size or self._log.rows:
            return None
        columns = dict(zip((*_TIMES, "size"), np.concatenate(self._times, axis=1), strict=True))
        begin = np.cumsum(columns["size"]) - columns["size"]
        rows, increments = (np.concatenate(column) for column in zip(*self._updates, strict=True))
        return Direction(
            times=ChunkTimes(begin=begin, **columns),
            frames=Frames.concat(self._frames),
            codes=np.concatenate(self._codes),
            sections=self._sections,
            updates=(rows, increments),
            controls=self._controls,
            bodies={s: (row, body) for s, (row, body) in self._bodies.items() if body is not None},
        )

    def take(self, chunks: list[Chunk]) -> bool:
        """The next chunks; False when they are not regular."""
        block = _Block(chunks, self._size)
        self._times.append(_times_of(chunks))
        self._size = block.end
        if self._data_stream:
            self._feed(block, self._data_stream, block.begin, self._next)
        if self._next >= self._size:  # all of it is content that is passed over
            return True
        data = b"".join([self._carry, *(chunk.data for chunk in chunks)])
        base = block.begin - len(self._carry)
        return (self._started or self._start(data)) and self._read(block, data, base)

    def _start(self, data: bytes) -> bool:
        """The connection preface: of the client these octets, of the server SETTINGS (RFC 9113 section 3.4)."""
        self._started = True
        self._next = len(self._opening)
        settings = data[3:4] == b"\x04" and data[5:9] == b"\0\0\0\0"
        return data.startswith(self._opening) if self._opening else settings

    def _read(self, block: _Block, data: bytes, base: int) -> bool:
        frames, self._next = _frames(block, data, base, self._next)
        if not _regular(frames) or self._rows + len(frames) > MOST_FRAMES:
            return False
        frames = self._whole(frames, data, base)
        if not self._headers(frames, data, base):
            return False
        self._others(frames, data, base)
        if self._bodies:
            self._contents(frames, block)
        self._frames.append(frames)
        self._rows += len(frames)
        return True

    def _whole(self, frames: Frames, data: bytes, base: int) -> Frames:
        """Without the last frame where it is not whole, unless it is DATA: of that only the header is needed."""
        self._carry, self._data_stream = b"", 0
        if len(frames) and self._next > self._size:
            if frames.type[-1] == _T.DATA:
                self._data_stream = int(frames.stream[-1])
                return frames
            self._next = int(frames.begin[-1])
            frames = frames.take(slice(0, -1))
        self._carry = data[self._next - base :]
        return frames

    def _headers(self, frames: Frames, data: bytes, base: int) -> bool:
        rows = np.flatnonzero(frames.type == _T.HEADERS)
        skipped = np.where(frames.flags[rows] & h2.Flag.PRIORITY, _PRIORITY_BYTES, 0)
        starts = frames.begin[rows] - base + HEADER_BYTES
        ends = starts + frames.length[rows]
        starts += skipped
        if (starts > ends).any():
            return False
        try:
            codes = decoded(self._decoder, data, starts, ends)
        except HpackError:
            return False
        self._codes.append(codes)
        if self._path_of is not None and True in self._may_be_events:
            self._open_bodies(frames, rows, codes)
        return not self._over_limit

    def _code(self, block: FieldBlock[Field]) -> int:
        """The place of a section among all; one section for equal ones, while they are few."""
        code = self._shared.get(block.fields)
        if code is None:
            code = len(self._sections)
            section = assemble(block)
            self._sections.append(section)
            self._may_be_events.append(may_be_events(section.fields))
            self._over_limit |= section.over_limit
            if code < _SHARED_SECTIONS:
                self._shared[block.fields] = code
        return code

    def _open_bodies(self, frames: Frames, rows: Int64, codes: Int64) -> None:
        going_on = frames.flags[rows] & h2.Flag.END_STREAM == 0
        for place in np.flatnonzero(np.array(self._may_be_events)[codes] & going_on).tolist():
            row = int(rows[place])
            stream_id = int(frames.stream[row])
            if stream_id not in self._bodies and self._path_of is not None:
                fields = self._sections[int(codes[place])].fields
                self._bodies[stream_id] = (
                    self._rows + row,
                    open_event_body(fields, self._path_of(stream_id), self._log),
                )

    def _others(self, frames: Frames, data: bytes, base: int) -> None:
        rows = np.flatnonzero((frames.type == _T.WINDOW_UPDATE) & (frames.length == 4))
        words = np.ndarray((max(0, len(data) - 3),), BIG32, data, 0, (1,))
        increments = words[frames.begin[rows] - base + HEADER_BYTES].astype(np.int64) & 0x7FFFFFFF
        self._updates.append((rows + self._rows, increments))
        for row in np.flatnonzero(np.isin(frames.type, _CONTROL)).tolist():
            start = int(frames.begin[row]) - base + HEADER_BYTES
            self._controls.append(
                Control(
                    frame=self._rows + row,
                    type=int(frames.type[row]),
                    flags=int(frames.flags[row]),
                    stream_id=int(frames.stream[row]),
                    payload=data[start : start + int(frames.length[row])],
                )
            )

    def _contents(self, frames: Frames, block: _Block) -> None:
        wanted = [stream_id for stream_id, (_, body) in self._bodies.items() if body is not None]
        rows = (frames.type == _T.DATA) & np.isin(frames.stream, wanted)
        starts = frames.begin[rows] + HEADER_BYTES
        ends = starts + frames.length[rows]
        for stream_id, start, end in zip(frames.stream[rows].tolist(), starts.tolist(), ends.tolist(), strict=True):
            self._feed(block, stream_id, start, end)

    def _feed(self, block: _Block, stream_id: int, start: int, end: int) -> None:
        _, body = self._bodies.get(stream_id, (0, None))
        if body is not None:
            block.feed(body, start, end)


_TIMES = ("offset", "first_seen_at", "last_seen_at", "deliverable_at", "first_packet", "last_packet")
_times = attrgetter(*_TIMES)


def _times_of(chunks: list[Chunk]) -> Int64:
    """A row for each of ``_TIMES``, and one for sizes."""
    rows = [*zip(*map(_times, chunks), strict=True), [len(chunk.data) for chunk in chunks]]
    return np.array([[NONE if value is None else value for value in row] if None in row else row for row in rows])


def _frames(block: _Block, data: bytes, base: int, begin: int) -> tuple[Frames, int]:
    """All frames from ``begin`` on, and where the next one begins; ``base`` is the place of ``data[0]``."""
    edges = np.array(block.edges[:-1], np.int64)
    entries = edges[(edges > begin) & (np.diff(edges, append=block.end) > 0)]
    starts, after = frame_starts(data, begin - base, entries - base)
    headers = np.ndarray((max(0, len(data) - HEADER_BYTES + 1),), _HEADER, data, 0, (1,))[starts]
    length_type = headers["length_type"].astype(np.int64)
    frames = Frames(
        begin=starts + base,
        length=length_type >> 8,
        type=length_type.astype(np.uint8),
        flags=headers["flags"],
        stream=(headers["stream"] & 0x7FFFFFFF).astype(np.int32),
    )
    return frames, base + after


def _regular(frames: Frames) -> bool:
    """Whether each can be read by itself."""
    data, headers = frames.type == _T.DATA, frames.type == _T.HEADERS
    messages = data | headers
    irregular = (
        (frames.length > h2.DEFAULT_MAX_FRAME)
        | (frames.type == _T.PUSH_PROMISE)
        | (frames.type == _T.CONTINUATION)
        | (messages & ((frames.flags & h2.Flag.PADDED != 0) | (frames.stream == 0)))
        | (headers & (frames.flags & h2.Flag.END_HEADERS == 0))
    )
    return not irregular.any()
