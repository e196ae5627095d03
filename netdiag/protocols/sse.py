"""Server-sent events (WHATWG HTML, section 9.2.6 "Interpreting an event stream"), fed in pieces of any size.

Comments are events of their own here: they prove that the path is alive and often mean "still queued".
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_LINE_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"
_DATA = b"data: "


class LineSplitter:
    """Lines ended by CR, LF or CRLF, split anywhere. A line above ``MAX_LINE_BYTES`` comes without its text."""

    __slots__ = ("_held", "_held_bytes", "_skip_lf")

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._skip_lf = False

    def feed(self, octets: bytes) -> list[tuple[bytes | None, int]]:
        """(line without its end, or None when it was too long; octets of the line with its end) of every line that ended.

        The LF of a CRLF whose CR ended the previous piece belongs to no line any more.
        """
        if self._skip_lf and octets:
            self._skip_lf = False
            octets = octets.removeprefix(b"\n")
        if not octets:
            return []
        pieces = octets.splitlines(keepends=True)
        tail = pieces.pop() if pieces[-1][-1] not in b"\r\n" else b""
        out: list[tuple[bytes | None, int]] = []
        for piece in pieces:
            size = len(piece)
            line: bytes | None = piece.rstrip(b"\r\n")
            if self._held_bytes:
                size += self._held_bytes
                line = b"".join([*self._held, line or b""]) if size <= MAX_LINE_BYTES else None
                self._forget()
            elif size > MAX_LINE_BYTES:
                line = None
            out.append((line, size))
        self._skip_lf = not tail and pieces[-1].endswith(b"\r")
        self._hold(tail)
        return out

    def _hold(self, tail: bytes) -> None:
        if not tail:
            return
        self._held_bytes += len(tail)
        if self._held_bytes <= MAX_LINE_BYTES:
            self._held.append(tail)
        else:
            self._held.clear()

    def _forget(self) -> None:
        self._held.clear()
        self._held_bytes = 0

    @property
    def at_line_start(self) -> bool:
        """Whatever comes next begins a line."""
        return not self._held_bytes and not self._skip_lf


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event, or one comment. Text stays with the caller no longer than it takes to tell its kind."""

    type: str
    """The ``event`` field; empty for none."""
    data: bytes | None
    """``data`` lines joined by LF; None for a comment, and where a line was too long."""
    size_bytes: int
    comment: bool = False


class EventStream:
    """Parser of one ``text/event-stream``."""

    __slots__ = ("_bom", "_data", "_lines", "_oversized", "_size", "_type")

    def __init__(self) -> None:
        self._lines = LineSplitter()
        self._bom: bytes | None = b""
        self._begin()

    def _begin(self) -> None:
        self._data: list[bytes] = []
        self._type = ""
        self._size = 0
        self._oversized = False

    def feed(self, octets: bytes) -> list[ServerSentEvent]:
        """Events whose terminating blank line is in these octets."""
        if self._bom is not None:
            octets = self._without_bom(octets)
        if self._is_one_event(octets):
            return [ServerSentEvent("", octets[len(_DATA) : -2], len(octets))]
        out: list[ServerSentEvent] = []
        for line, size in self._lines.feed(octets):
            self._size += size
            if line is None:
                self._oversized = True
            elif not line:
                self._dispatch(out)
            elif line[0] == 0x3A:
                self._comment(out)
            else:
                self._field(line)
        return out

    def _is_one_event(self, octets: bytes) -> bool:
        """Whether these octets are an event of one ``data`` line, as nearly every API sends them."""
        return (
            octets.startswith(_DATA)
            and octets.find(b"\n") == len(octets) - 2
            and octets.endswith(b"\n")
            and b"\r" not in octets
            and len(octets) <= MAX_LINE_BYTES
            and self._size == 0  # nothing of an event is held
            and self._lines.at_line_start
        )

    def _without_bom(self, octets: bytes) -> bytes:
        octets = (self._bom or b"") + octets
        if len(octets) < len(_BOM) and _BOM.startswith(octets):
            self._bom = octets
            return b""
        self._bom = None
        return octets.removeprefix(_BOM)

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._type = value[:128].decode("utf-8", "replace")

    def _comment(self, out: list[ServerSentEvent]) -> None:
        if not self._data and not self._type and not self._oversized:
            out.append(ServerSentEvent("", None, self._size, comment=True))
            self._size = 0

    def _dispatch(self, out: list[ServerSentEvent]) -> None:
        if self._oversized:
            out.append(ServerSentEvent(self._type, None, self._size))
        elif self._data:
            out.append(ServerSentEvent(self._type, b"\n".join(self._data), self._size))
        elif self._type:
            # Nothing is dispatched to a page without data, but it travelled: ``event: ping`` alone is a sign of life.
            out.append(ServerSentEvent(self._type, b"", self._size))
        self._begin()
