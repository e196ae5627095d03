"""Interim responses (1xx, RFC 9110 section 15.2), which httpcore swallows: noticed in the plaintext on its way to httpcore."""

from __future__ import annotations

import re
import struct
from typing import Protocol

import hpack

_H1_HEAD = re.compile(rb"(?:\A|\r\n\r\n)HTTP/1\.[01] (\d{3})[ \r]")
_FRAME_HEADER = 9
_HEADERS, _CONTINUATION = 0x1, 0x9
_END_HEADERS, _PADDED, _PRIORITY = 0x4, 0x8, 0x20
_LONGEST_BLOCK = 256 * 1024


class InterimTap(Protocol):
    """Looks at everything the server says on one connection."""

    def feed(self, data: bytes) -> list[tuple[int | None, int]]:
        """(stream id or None, status) of each interim response whose head is complete with these octets."""


class Http1Tap:
    """A head begins where a response may begin. Heads split over two reads are rare enough to be missed."""

    def feed(self, data: bytes) -> list[tuple[int | None, int]]:
        """See ``InterimTap.feed``."""
        found: list[tuple[int | None, int]] = []
        for head in _H1_HEAD.finditer(data):
            status = int(head[1])
            if status >= 200:  # what follows is its body
                break
            found.append((None, status))
        return found


class Http2Tap:
    """Walks the frames (RFC 9113 section 4) and decodes every field block, since HPACK's state depends on all of them."""

    def __init__(self) -> None:
        self._decoder = hpack.Decoder(max_header_list_size=_LONGEST_BLOCK)
        self._rest = b""
        self._skip = 0
        """Octets of an uninteresting payload still to come."""
        self._block = b""
        self._lost = False

    def feed(self, data: bytes) -> list[tuple[int | None, int]]:
        """See ``InterimTap.feed``. After anything malformed it sees no more: httpcore will report what is wrong."""
        if self._lost:
            return []
        try:
            return self._walk(data)
        except (hpack.HPACKError, struct.error, IndexError, ValueError):
            self._lost = True
            return []

    def _walk(self, data: bytes) -> list[tuple[int | None, int]]:
        found: list[tuple[int | None, int]] = []
        skipped = min(self._skip, len(data))
        self._skip -= skipped
        rest = self._rest + data[skipped:]
        at = 0
        while len(rest) - at >= _FRAME_HEADER:
            length, kind, flags, stream = _frame_header(rest, at)
            end = at + _FRAME_HEADER + length
            if kind not in (_HEADERS, _CONTINUATION):
                self._skip = max(0, end - len(rest))
                at = min(end, len(rest))
                continue
            if end > len(rest):
                break
            status = self._field_block(rest[at + _FRAME_HEADER : end], kind, flags)
            if status is not None and status < 200:
                found.append((stream, status))
            at = end
        self._rest = rest[at:]
        return found

    def _field_block(self, payload: bytes, kind: int, flags: int) -> int | None:
        """The status, when the block is complete and has one (trailers have none)."""
        self._block += _fragment(payload, flags) if kind == _HEADERS else payload
        if len(self._block) > _LONGEST_BLOCK:
            raise ValueError("field block too long")
        if not flags & _END_HEADERS:
            return None
        fields = self._decoder.decode(self._block, raw=True)
        self._block = b""
        status = next((value for name, value in fields if bytes(name) == b":status"), None)
        return None if status is None else int(bytes(status))


def _frame_header(data: bytes, at: int) -> tuple[int, int, int, int]:
    high, low, kind, flags, stream = struct.unpack_from(">BHBBI", data, at)
    return high << 16 | low, kind, flags, stream & 0x7FFFFFFF


def _fragment(payload: bytes, flags: int) -> bytes:
    """Without padding and priority (RFC 9113 section 6.2)."""
    start = 1 if flags & _PADDED else 0
    end = len(payload) - (payload[0] if flags & _PADDED else 0)
    return payload[start + (5 if flags & _PRIORITY else 0) : end]


def tap_for(alpn: str | None, protocol: str | None) -> InterimTap:
    """The tap for what the connection turned out to speak; the arm's protocol decides in clear text."""
    return Http2Tap() if alpn == "h2" or (alpn is None and protocol == "h2") else Http1Tap()
