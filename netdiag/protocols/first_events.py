"""The first events of a streamed answer, for whoever asks when they came and nothing else."""

from __future__ import annotations

from netdiag.protocols.event_readers import EventReader
from netdiag.records.stream import SIGNS_OF_LIFE, TOKEN_BEARING, EventKind
from netdiag.wire.tables import NONE


class FirstEvents:
    """In which of the pieces fed the first event, the first with a token and the first with visible text ended; NONE while there was none."""

    __slots__ = ("_read", "event", "token", "visible")

    def __init__(self, reader: EventReader) -> None:
        self._read = reader.read
        self.event = self.token = self.visible = NONE

    def feed(self, octets: bytes, piece: int) -> None:
        """The octets that follow, which are of this piece."""
        for kind, _ in self._read(octets):
            if self.event == NONE and kind not in SIGNS_OF_LIFE:
                self.event = piece
            if self.token == NONE and kind in TOKEN_BEARING:
                self.token = piece
            if self.visible == NONE and kind is EventKind.TEXT:
                self.visible = piece

    @property
    def told(self) -> bool:
        """Nothing that follows can tell more: visible text bears tokens, and is an event."""
        return self.visible != NONE
