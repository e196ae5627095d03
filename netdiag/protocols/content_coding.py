"""Content codings undone under limits, as far as a stream of events can need it (RFC 9110 section 8.4; RFC 7932, RFC 9659)."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

MAX_OUTPUT_BYTES = 64 << 20
MAX_RATIO = 200
MAX_STEP_BYTES = 1 << 20
MAX_CODINGS = 2
# A ratio means nothing for the first few octets: a gzip header alone is eighteen.
_RATIO_FROM_BYTES = 64 << 10
_ZSTD_WINDOW_BYTES = 8 << 20
"""RFC 9659: the largest window that a zstd coding may ask for."""
_ZSTD_INPUT_BYTES = 32
"""zstandard has no limit for what one call gives, but a block of at least four octets unpacks to at most 128 KiB."""


class DamagedCoding(Exception):
    """Octets that make no sense in their coding. Never leaves this module."""


class _Unpacker(Protocol):
    """One coding of one body."""

    def unpack(self, octets: bytes) -> Iterator[bytes]:
        """What these octets decode to, in steps of about ``MAX_STEP_BYTES`` at most. Raises ``DamagedCoding``."""


class ContentDecoder:
    """One body's codings, undone as its octets come. After damage or a limit it gives nothing more, and ``failed`` says why."""

    __slots__ = ("_in", "_out", "_unpackers", "failed")

    def __init__(self, codings: tuple[str, ...]) -> None:
        """``codings`` in the order in which they were applied; ``obstacle`` must have none against them."""
        self._unpackers = [_CODINGS[coding]() for coding in reversed(codings)]
        self._in = self._out = 0
        self.failed: str | None = None

    def feed(self, octets: bytes) -> bytes:
        """What these octets decode to."""
        if self.failed is not None:
            return b""
        self._in += len(octets)
        try:
            for unpacker in self._unpackers:
                octets = self._undo(unpacker, octets)
        except DamagedCoding as error:
            self.failed = f"content coding is damaged: {error}"
            return b""
        return octets

    def _undo(self, unpacker: _Unpacker, octets: bytes) -> bytes:
        out: list[bytes] = []
        for piece in unpacker.unpack(octets):
            out.append(piece)
            self._out += len(piece)
            if self._out > MAX_OUTPUT_BYTES:
                self.failed = f"content is larger than {MAX_OUTPUT_BYTES} octets when decoded"
            elif self._out > _RATIO_FROM_BYTES and self._out > MAX_RATIO * self._in:
                self.failed = f"content grows more than {MAX_RATIO} times when decoded"
            if self.failed is not None:
                break
        return b"".join(out)


def codings_of(content_encoding: str | None) -> tuple[str, ...]:
    """The codings that a Content-Encoding field names, in the order in which they were applied; none for identity."""
    named = (part.strip() for part in (content_encoding or "").lower().split(","))
    return tuple(coding for coding in named if coding and coding != "identity")


def obstacle(codings: tuple[str, ...]) -> str | None:
    """Why these codings cannot be undone here; None when they can."""
    if len(codings) > MAX_CODINGS:
        return f"there are more than {MAX_CODINGS} content codings"
    for coding in codings:
        if coding not in _CODINGS:
            return "their content coding is not known"
        if coding == "br" and _brotli() is None:
            return "their content coding br needs the package brotli, 1.2 or later"
    return None


class _Zlib:
    """``gzip``, also of several members; ``deflate`` in the zlib format or, against RFC 9110 section 8.4.1.2, raw: the first octet tells."""

    def __init__(self, *, deflate: bool = False) -> None:
        self._deflate = deflate
        self._inflater: Any = None

    def unpack(self, octets: bytes) -> Iterator[bytes]:
        while octets:
            if self._inflater is None:
                self._inflater = zlib.decompressobj(wbits=self._wbits(octets[0]))
            inflater = self._inflater
            try:
                piece = inflater.decompress(octets, MAX_STEP_BYTES)
                octets = inflater.unconsumed_tail
                yield piece
                while len(piece) == MAX_STEP_BYTES and not octets:  # the input is used up, the output is not
                    piece = inflater.decompress(b"", MAX_STEP_BYTES)
                    yield piece
            except zlib.error as error:
                raise DamagedCoding(str(error)) from None
            if inflater.eof:
                octets = inflater.unused_data
                if not octets.startswith(b"\x1f"):
                    return
                self._inflater = None

    def _wbits(self, first: int) -> int:
        if not self._deflate:
            return zlib.MAX_WBITS | 32
        return zlib.MAX_WBITS if first & 0x0F == 8 and first >> 4 <= 7 else -zlib.MAX_WBITS


class _Zstd:
    def __init__(self) -> None:
        import zstandard

        self._damage = zstandard.ZstdError
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
        self._frame: Any = None

    def unpack(self, octets: bytes) -> Iterator[bytes]:
        for start in range(0, len(octets), _ZSTD_INPUT_BYTES):
            rest = octets[start : start + _ZSTD_INPUT_BYTES]
            while rest:
                if self._frame is None:
                    self._frame = self._decompressor.decompressobj()
                try:
                    yield self._frame.decompress(rest)
                except self._damage as error:
                    raise DamagedCoding(str(error).removeprefix("zstd decompressor error: ")) from None
                rest = b""
                if self._frame.eof:
                    rest, self._frame = self._frame.unused_data, None


class _Brotli:
    def __init__(self) -> None:
        self._brotli = _brotli()
        self._decompressor = self._brotli.Decompressor()

    def unpack(self, octets: bytes) -> Iterator[bytes]:
        decompressor = self._decompressor
        try:
            yield decompressor.process(octets, output_buffer_limit=MAX_STEP_BYTES)
            while not decompressor.is_finished() and not decompressor.can_accept_more_data():
                yield decompressor.process(b"", output_buffer_limit=MAX_STEP_BYTES)
        except self._brotli.error as error:
            raise DamagedCoding(str(error) or "no brotli") from None


def _brotli() -> Any:
    """The brotli module, if one is installed that can stop at a limit; else None."""
    for name in ("brotli", "brotlicffi"):
        try:
            module = __import__(name)
        except ImportError:
            continue
        if hasattr(module.Decompressor, "can_accept_more_data"):
            return module
    return None


_CODINGS: dict[str, Callable[[], _Unpacker]] = {
    "gzip": _Zlib,
    "x-gzip": _Zlib,
    "deflate": lambda: _Zlib(deflate=True),
    "zstd": _Zstd,
    "br": _Brotli,
}
