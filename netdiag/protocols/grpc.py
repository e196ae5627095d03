"""gRPC over HTTP/2 and gRPC-Web: length-prefixed messages, and the status (gRPC "PROTOCOL-HTTP2", "PROTOCOL-WEB")."""

from __future__ import annotations

from collections.abc import Sequence

from netdiag.protocols.headers import Field, find, make_field

_PREFIX_BYTES = 5
_TRAILER_FLAG = 0x80
_MAX_TRAILER_BYTES = 64 << 10


class MessageSplitter:
    """Finds where messages end; their octets are not kept (but for gRPC-Web's trailer frame)."""

    __slots__ = ("_flags", "_left", "_prefix", "_size", "_trailer", "trailers")

    def __init__(self) -> None:
        self._prefix = bytearray()
        self._left = 0
        self._size = 0
        self._flags = 0
        self._trailer = bytearray()
        self.trailers: tuple[Field, ...] = ()
        """Of a gRPC-Web body."""

    def feed(self, octets: bytes) -> list[int]:
        """Size in octets, prefix included, of every message that ended in these octets."""
        out: list[int] = []
        pos = 0
        while pos < len(octets):
            if not self._left:
                pos = self._read_prefix(octets, pos)
                if self._left or len(self._prefix) < _PREFIX_BYTES:
                    continue
            else:
                step = min(self._left, len(octets) - pos)
                if self._flags & _TRAILER_FLAG and len(self._trailer) < _MAX_TRAILER_BYTES:
                    self._trailer += octets[pos : pos + step]
                pos += step
                self._left -= step
            if not self._left:
                self._end(out)
        return out

    def _read_prefix(self, octets: bytes, pos: int) -> int:
        need = _PREFIX_BYTES - len(self._prefix)
        self._prefix += octets[pos : pos + need]
        if len(self._prefix) == _PREFIX_BYTES:
            self._flags = self._prefix[0]
            self._left = int.from_bytes(self._prefix[1:], "big")
            self._size = _PREFIX_BYTES + self._left
        return min(pos + need, len(octets))

    def _end(self, out: list[int]) -> None:
        if self._flags & _TRAILER_FLAG:
            lines = [line.partition(b":") for line in bytes(self._trailer).split(b"\r\n") if line]
            self.trailers = tuple(make_field(name.strip(), value.strip()) for name, _, value in lines[:1000])
        else:
            out.append(self._size)
        self._prefix.clear()


def status_of(*sections: Sequence[Field]) -> int | None:
    """``grpc-status`` from the first section that has it (trailers, or the head of a Trailers-Only answer)."""
    for fields in sections:
        value = find(fields, "grpc-status")
        if value is not None:
            return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else None
    return None


def is_grpc(content_type: str | None) -> bool:
    """Whether a content type is gRPC's or gRPC-Web's binary form."""
    media = (content_type or "").partition(";")[0].strip().lower()
    return media.startswith("application/grpc") and not media.startswith("application/grpc-web-text")
