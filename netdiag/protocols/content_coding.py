"""Content codings undone under limits: only when asked, and never more than a stream of events can need (RFC 9110 section 8.4)."""

from __future__ import annotations

import zlib
from typing import Protocol

MAX_OUTPUT_BYTES = 64 << 20
MAX_RATIO = 200
MAX_STEP_BYTES = 1 << 20
MAX_CODINGS = 2
# A ratio means nothing for the first few octets: a gzip header alone is eighteen.
_RATIO_FROM_BYTES = 64 << 10


class _Inflater(Protocol):
    """What zlib's decompression objects have."""

    @property
    def unconsumed_tail(self) -> bytes: ...

    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes: ...


class ContentDecoder:
    """One body's codings, undone as its octets come. After damage or a limit it gives nothing more, and ``failed`` says why."""

    __slots__ = ("_in", "_inflaters", "_out", "failed")

    def __init__(self, codings: tuple[str, ...]) -> None:
        """``codings`` in the order in which they were applied; see ``decodable``."""
        self._inflaters = [_inflater(coding) for coding in reversed(codings)]
        self._in = self._out = 0
        self.failed: str | None = None

    def feed(self, octets: bytes) -> bytes:
        """What these octets decode to."""
        if self.failed is not None:
            return b""
        self._in += len(octets)
        try:
            for inflater in self._inflaters:
                octets = self._step(inflater, octets)
        except zlib.error as error:
            self.failed = f"content coding is damaged: {error}"
            return b""
        return octets

    def _step(self, inflater: _Inflater, octets: bytes) -> bytes:
        out: list[bytes] = []
        pending = bool(octets)
        while pending and not inflater.eof and self.failed is None:
            piece = inflater.decompress(octets, MAX_STEP_BYTES)
            octets = inflater.unconsumed_tail
            # A full step may leave output inside the inflater when its input is used up.
            pending = bool(octets) or len(piece) == MAX_STEP_BYTES
            out.append(piece)
            self._out += len(piece)
            if self._out > MAX_OUTPUT_BYTES:
                self.failed = f"content is larger than {MAX_OUTPUT_BYTES} octets when decoded"
            elif self._out > _RATIO_FROM_BYTES and self._out > MAX_RATIO * self._in:
                self.failed = f"content grows more than {MAX_RATIO} times when decoded"
        return b"".join(out)


def decodable(content_encoding: str | None) -> tuple[str, ...] | None:
    """Codings to undo (none for identity); None when one of them is not known here, or there are too many."""
    codings = tuple(
        c for part in (content_encoding or "").lower().split(",") if (c := part.strip()) and c != "identity"
    )
    if len(codings) > MAX_CODINGS or not all(c in ("gzip", "x-gzip", "deflate") for c in codings):
        return None
    return codings


def _inflater(coding: str) -> _Inflater:
    # 32: zlib or gzip by their header. "deflate" without a zlib header is seen in the field; RFC 9110 section 8.4.1.2 notes it.
    return _RawOrZlib() if coding == "deflate" else zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)


class _RawOrZlib:
    """``deflate``: the zlib format, or, against the specification, the raw one; the first octet tells."""

    def __init__(self) -> None:
        self._inner: _Inflater | None = None

    @property
    def unconsumed_tail(self) -> bytes:
        return b"" if self._inner is None else self._inner.unconsumed_tail

    @property
    def eof(self) -> bool:
        return self._inner is not None and self._inner.eof

    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes:
        inner = self._inner
        if inner is None:
            zlib_format = data[0] & 0x0F == 8 and data[0] >> 4 <= 7
            inner = self._inner = zlib.decompressobj(wbits=zlib.MAX_WBITS if zlib_format else -zlib.MAX_WBITS)
        return inner.decompress(data, max_length)
