"""The first events of a streamed answer, for whoever asks when they came and nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from netdiag.protocols.content_coding import ContentDecoder, codings_of, obstacle
from netdiag.protocols.event_readers import REPORT_TYPE, EventReader, reader_for
from netdiag.protocols.grpc import is_grpc
from netdiag.protocols.headers import Field, find, media_type
from netdiag.records.stream import SIGNS_OF_LIFE, TOKEN_BEARING, EventKind
from netdiag.wire.tables import NONE


class Content(NamedTuple):
    """What must be looked at of an answer's content for its first events, and to know that the coding of what may be read is sound."""

    media: str = ""
    codings: tuple[str, ...] = ()


_NOTHING = Content()


def content_of(fields: Sequence[Field]) -> Content | None:
    """Of an answer with this head; None for content that tells more than its events (gRPC), or cannot be decoded."""
    media = media_type(fields)
    if is_grpc(media):
        return None
    is_stream = reader_for(media) is not None
    if not is_stream and media != REPORT_TYPE:
        return _NOTHING
    codings = codings_of(find(fields, "content-encoding"))
    if codings and obstacle(codings) is not None:
        return None if is_stream else _NOTHING
    return Content(media, codings) if is_stream or codings else _NOTHING


_OF_ERRORS = re.compile(rb"error|failed|xception")
"""In every event that says that something went wrong, and in many others."""
_LONGEST_OF_THEM = 8


class FirstEvents:
    """In which of the pieces fed the first event, the first with a token and the first with visible text ended; NONE while there was none."""

    __slots__ = ("_before", "_decoder", "_read", "event", "may_tell_an_error", "token", "visible")

    def __init__(self, reader: EventReader | None, decoder: ContentDecoder | None = None) -> None:
        self._read = None if reader is None else reader.read
        self._decoder = decoder
        self.event = self.token = self.visible = NONE
        self.may_tell_an_error = False
        """Whether some event does is for who reads them all."""
        self._before = b""

    def feed(self, octets: bytes, piece: int) -> None:
        """The octets that follow, which are of this piece."""
        if self._decoder is not None:
            octets = self._decoder.feed(octets)
        self.search(octets)
        for kind, _ in () if self._read is None else self._read(octets):
            if self.event == NONE and kind not in SIGNS_OF_LIFE:
                self.event = piece
            if self.token == NONE and kind in TOKEN_BEARING:
                self.token = piece
            if self.visible == NONE and kind is EventKind.TEXT:
                self.visible = piece

    def search(self, octets: bytes) -> None:
        """The octets that follow (decoded), for nothing but errors."""
        if self._read is None or self.may_tell_an_error:
            return
        joined = self._before + octets
        self.may_tell_an_error = _OF_ERRORS.search(joined) is not None
        self._before = joined[1 - _LONGEST_OF_THEM :]

    @property
    def told(self) -> bool:
        """Nothing that follows can tell more but errors: visible text bears tokens and is an event, and no coding is left that could be damaged."""
        return self.visible != NONE and self._decoder is None

    @property
    def asks_for_more(self) -> bool:
        """The coding makes no sense, or an event may tell of an error: the answer must be read in full."""
        return self.may_tell_an_error or (self._decoder is not None and self._decoder.failed is not None)


def firsts_of(content: Content, *, to_report: bool) -> FirstEvents | None:
    """What tells the first events of such content; None where there is nothing to look at. ``to_report``: it answers a request of which
    ``event_body.wants_report`` holds."""
    reader = reader_for(content.media)
    if reader is None and not (content.codings and to_report):
        return None
    return FirstEvents(reader, ContentDecoder(content.codings) if content.codings else None)
