"""Content codings as a server applies them: some octets, and a flush when a client is to have them now."""

from __future__ import annotations

import importlib
import zlib
from typing import Any, Protocol

from netdiag.errors import UsageError


class Packer(Protocol):
    """One body's coding."""

    def pack(self, octets: bytes) -> bytes:
        """What comes out so far."""

    def flush(self) -> bytes:
        """So much that all octets up to here can be unpacked."""

    def end(self) -> bytes:
        """The rest."""


def packer(coding: str) -> Packer:
    """For ``gzip``, ``deflate``, ``zstd`` or ``br``. Raises UsageError where the library for it is missing."""
    if coding == "zstd":
        return _Zstd()
    if coding == "br":
        return _Brotli()
    return _Zlib(31 if coding == "gzip" else 15)


class _Zlib:
    def __init__(self, wbits: int) -> None:
        self._compressor = zlib.compressobj(wbits=wbits)

    def pack(self, octets: bytes) -> bytes:
        return self._compressor.compress(octets)

    def flush(self) -> bytes:
        return self._compressor.flush(zlib.Z_SYNC_FLUSH)

    def end(self) -> bytes:
        return self._compressor.flush()


class _Zstd:
    def __init__(self) -> None:
        import zstandard

        self._compressor = zstandard.ZstdCompressor().compressobj()
        self._block = zstandard.COMPRESSOBJ_FLUSH_BLOCK

    def pack(self, octets: bytes) -> bytes:
        return self._compressor.compress(octets)

    def flush(self) -> bytes:
        return self._compressor.flush(self._block)

    def end(self) -> bytes:
        return self._compressor.flush()


class _Brotli:
    def __init__(self) -> None:
        try:
            brotli: Any = importlib.import_module("brotli")
        except ImportError:
            raise UsageError("coding=br needs the package brotli", advice="pip install brotli") from None
        self._compressor = brotli.Compressor()

    def pack(self, octets: bytes) -> bytes:
        return bytes(self._compressor.process(octets))

    def flush(self) -> bytes:
        return bytes(self._compressor.flush())

    def end(self) -> bytes:
        return bytes(self._compressor.finish())
