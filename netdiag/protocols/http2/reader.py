"""One direction of an HTTP/2 connection: chunks in, frames out. The octets of DATA are passed over, not copied, unless somebody wants them."""

from __future__ import annotations

from typing import Protocol

from netdiag.protocols.anomalies import AnomalyLog
from netdiag.protocols.headers import printable
from netdiag.protocols.http2 import frames as h2
from netdiag.wire.chunk import Chunk, Moment

_NO_DATA = -1


class FrameHandler(Protocol):
    """Takes the frames of one direction in order."""

    def frame(
        self, type_: int, flags: int, stream_id: int, payload: bytes | None, first: Moment, last: Moment, length: int
    ) -> None:
        """A whole frame other than DATA; ``payload`` is None where octets of it are missing."""

    def data_begin(self, flags: int, stream_id: int, length: int, first: Moment) -> bool:
        """A DATA frame header; returns whether the content is wanted."""

    def data_content(self, octets: bytes, moment: Moment) -> None:
        """Some content of the DATA frame that was begun."""

    def data_missing(self, size: int) -> None:
        """Content of that frame which the capture lacks."""

    def data_end(self, padding: int, missing: int, last: Moment) -> None:
        """Its last octet."""

    def lost(self) -> None:
        """Frames were missed: header compression history is gone."""


class FrameReader:
    """Finds frames. After a loss it waits for a chunk that begins with plausible ones, as segments and TLS records do."""

    def __init__(self, handler: FrameHandler, log: AnomalyLog, *, is_client: bool) -> None:
        self._handler = handler
        self._log = log
        self._expects_preface = is_client
        self._started = False
        self._in_sync = True
        self._first: Moment | None = None
        self._last: Moment | None = None
        self._chunk: Chunk | None = None
        # The beginning of a frame header (or of the preface) whose end has not come, and when it did.
        self._held = b""
        self._held_first: Moment | None = None
        # The same while those octets lie before this chunk's own.
        self._begun: Moment | None = None
        # A DATA frame under way: content and padding that are still to come; _NO_DATA when there is none.
        self._content_left = _NO_DATA
        self._padding_left = 0
        self._padding = 0
        self._pad_octet_pending = False
        self._wanted = False
        self._missing = 0
        # Another frame under way: octets still to come, and its header.
        self._frame_left = 0
        self._frame: tuple[int, int, int, Moment, int] | None = None
        self._payload = bytearray()
        self._frame_broken = False
        self.preface: Moment | None = None
        self.max_frame = h2.DEFAULT_MAX_FRAME
        """What this direction may send: the peer's SETTINGS_MAX_FRAME_SIZE."""
        self.highest_stream = 0

    def take(self, chunk: Chunk) -> None:
        """The next chunk of this direction."""
        if chunk.missing_before:
            self._cross_gap(chunk.missing_before)
        self._chunk = chunk
        self._first = self._last = None
        self._begun = None
        data, pos = chunk.data, 0
        if not self._in_sync:
            if not h2.plausible_chain(data, self.highest_stream):
                return
            self._in_sync = True
        if self._held:
            data = self._held + data
            self._held = b""
            self._begun = self._held_first
        if not self._started:
            pos = self._start(data)
            if pos < 0:
                return
        self._frames(data, pos)

    def _hold(self, octets: bytes) -> None:
        self._held = octets
        self._held_first = self._begins()

    def _begins(self) -> Moment:
        """First octet of what begins now: a chunk before this one may have it."""
        if self._begun is None:
            return self._first_moment()
        begun, self._begun = self._begun, None
        return begun

    def _first_moment(self) -> Moment:
        if self._first is None:
            chunk = self._chunk
            assert chunk is not None
            self._first = chunk.first_moment()
        return self._first

    def _last_moment(self) -> Moment:
        if self._last is None:
            chunk = self._chunk
            assert chunk is not None
            whole = chunk.first_seen_at == chunk.last_seen_at
            self._last = self._first_moment() if whole else chunk.last_moment()
        return self._last

    def _start(self, data: bytes) -> int:
        """The connection's first octets: the client's preface, or SETTINGS (RFC 9113 section 3.4). Returns where frames begin, -1: not yet."""
        if self.preface is None:
            self.preface = self._first_moment()
        if self._expects_preface:
            if len(data) < len(h2.PREFACE) and h2.PREFACE.startswith(data):
                self._hold(data)
                return -1
            self._started = True
            if data.startswith(h2.PREFACE):
                self._begun = None
                return len(h2.PREFACE)
            self.preface = None
        else:
            if len(data) < 9:
                self._hold(data)
                return -1
            self._started = True
            if data[3:4] == b"\x04" and data[5:9] == b"\0\0\0\0":
                return 0
            self.preface = None
        self._handler.lost()
        self.max_frame = h2.LARGEST_FRAME  # what was announced is not known
        if not h2.plausible_chain(data):
            self._lose(f"expected HTTP/2 frames, found {printable(data)}")
            return -1
        return 0

    def _lose(self, reason: str | None) -> None:
        if reason is not None:
            chunk = self._chunk
            self._log.add(reason, packet=chunk.first_packet if chunk else None, offset=chunk.offset if chunk else None)
        self._in_sync = False
        self._held = b""
        self._payload.clear()
        if self._content_left != _NO_DATA and self._last is not None:
            self._close_data()
        self._content_left, self._padding_left, self._pad_octet_pending = _NO_DATA, 0, False
        self._frame, self._frame_left, self._frame_broken = None, 0, False
        self._handler.lost()

    def _cross_gap(self, missing: int) -> None:
        """Frame lengths tell where the next frame begins, as long as the gap lies inside one."""
        if (
            self._content_left != _NO_DATA
            and not self._pad_octet_pending
            and 0 < missing <= self._content_left + self._padding_left
        ):
            content = min(missing, self._content_left)
            self._content_left -= content
            self._padding_left -= missing - content
            self._missing += missing
            self._handler.data_missing(content)
            if not self._content_left and not self._padding_left:
                self._close_data()
        elif self._frame is not None and 0 < missing <= self._frame_left:
            self._frame_left -= missing
            self._frame_broken = True
            self._payload.clear()
            if not self._frame_left:
                self._close_frame(b"")
        elif self._started or self._in_sync:
            self._started = True
            self._lose(None)

    def _frames(self, data: bytes, pos: int) -> None:
        size = len(data)
        while pos < size:
            if self._content_left != _NO_DATA:
                pos = self._data(data, pos)
            elif self._frame is not None:
                pos = self._rest_of_frame(data, pos)
            elif size - pos < 9:
                self._hold(data[pos:])
                return
            else:
                pos = self._header(data, pos)
                if pos < 0:
                    return

    def _header(self, data: bytes, pos: int) -> int:
        high, low, type_, flags, stream_id = h2.FRAME_HEADER.unpack_from(data, pos)
        length: int = high << 8 | low
        stream_id &= 0x7FFFFFFF
        if length > self.max_frame and not self._accept_long(length, type_, flags, stream_id):
            return -1
        if stream_id > self.highest_stream:
            self.highest_stream = stream_id
        pos += 9
        if type_ == h2.FrameType.DATA:
            self._wanted = self._handler.data_begin(flags, stream_id, length, self._begins())
            if not self._wanted and not flags & h2.Flag.PADDED and pos + length <= len(data):
                self._handler.data_end(0, 0, self._last_moment())
                return pos + length
            self._content_left, self._padding_left, self._padding, self._missing = length, 0, 0, 0
            self._pad_octet_pending = bool(flags & h2.Flag.PADDED) and length > 0
            if not length:
                self._close_data()
            return pos
        end = pos + length
        if end <= len(data):
            self._handler.frame(type_, flags, stream_id, data[pos:end], self._begins(), self._last_moment(), length)
            return end
        self._frame = type_, flags, stream_id, self._begins(), length
        self._frame_left = length
        return pos

    def _accept_long(self, length: int, type_: int, flags: int, stream_id: int) -> bool:
        """A frame above what the peer allows: an endpoint ends the connection, an observer may have missed the SETTINGS."""
        reason = f"a frame of {length} octets, but at most {self.max_frame} were announced"
        if not h2.plausible_header(h2.DEFAULT_MAX_FRAME, type_, flags, stream_id, self.highest_stream):
            self._lose(reason)
            return False
        self._log.add(reason, packet=self._first_moment().packet)
        self.max_frame = length
        return True

    def _data(self, data: bytes, pos: int) -> int:
        if self._pad_octet_pending:
            self._pad_octet_pending = False
            padding = min(data[pos], self._content_left - 1)
            self._padding = padding + 1
            self._padding_left = padding
            self._content_left -= self._padding
            pos += 1
        step = min(self._content_left, len(data) - pos)
        if self._wanted and step:
            self._handler.data_content(data[pos : pos + step], self._last_moment())
        self._content_left -= step
        pos += step
        step = min(self._padding_left, len(data) - pos)
        self._padding_left -= step
        if not self._content_left and not self._padding_left:
            self._close_data()
        return pos + step

    def _close_data(self) -> None:
        self._content_left = _NO_DATA
        self._handler.data_end(self._padding, self._missing, self._last_moment())

    def _rest_of_frame(self, data: bytes, pos: int) -> int:
        step = min(self._frame_left, len(data) - pos)
        self._frame_left -= step
        if self._frame_left:
            if not self._frame_broken:
                self._payload += data[pos : pos + step]
        else:
            self._close_frame(data[pos : pos + step])
        return pos + step

    def _close_frame(self, tail: bytes) -> None:
        assert self._frame is not None
        type_, flags, stream_id, first, length = self._frame
        payload = None if self._frame_broken else bytes(self._payload) + tail
        self._payload.clear()
        self._frame, self._frame_broken = None, False
        self._handler.frame(type_, flags, stream_id, payload, first, self._last_moment(), length)
