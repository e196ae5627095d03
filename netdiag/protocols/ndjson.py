"""Newline-delimited JSON: one value a line (Ollama's ``application/x-ndjson``, JSON lines, RFC 7464 with its record separators)."""

from __future__ import annotations

from netdiag.protocols.sse import LineSplitter

_RECORD_SEPARATOR = b"\x1e"


class JsonLines:
    """Parser of one stream of lines."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines = LineSplitter()

    def feed(self, octets: bytes) -> list[tuple[bytes | None, int]]:
        """(value, octets with line end) of every line that ended; an empty value is a keep-alive, None a line that was too long."""
        return [
            (None if line is None else line.strip(_RECORD_SEPARATOR + b" \t"), n)
            for line, n in self._lines.feed(octets)
        ]
