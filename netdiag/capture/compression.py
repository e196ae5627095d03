"""Octets of a capture file in one buffer: mapped where possible, else spooled (and decompressed) to an unnamed temporary file."""

from __future__ import annotations

import errno
import io
import mmap
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from netdiag.capture.formats import LONGEST_MAGIC_BYTES, SAMPLE_BYTES, may_be_capture
from netdiag.errors import CaptureFileError
from netdiag.records.anomaly import Anomaly
from netdiag.wire.tables import Buffer

if TYPE_CHECKING:
    import tempfile

DEFAULT_MAX_BYTES = 64 << 30
"""Of what is spooled or decompressed."""
MAX_RATIO = 250
"""Decompressed octets for one compressed octet; captures reach some tens, a higher ratio is an attack, or a file of zeros."""
FREE_BYTES = 64 << 20
"""Up to here the ratio does not matter."""
STEP_BYTES = 1 << 20
"""Decompressed at once, at most."""
SMALL_STEP_BYTES = 64
"""Compressed octets at once where damage is near."""
IN_MEMORY_BYTES = 1 << 20
"""What is spooled stays in memory up to this size."""
MAX_ZSTD_WINDOW_BYTES = 128 << 20


@dataclass(slots=True)
class Spooled:
    """The octets, and what was wrong on the way to them."""

    buffer: Buffer
    path: str | None
    suffix: str = ""
    """``.gz``, ``.zst``, ``.lz4`` or nothing."""
    anomalies: list[Anomaly] = field(default_factory=list)
    cut_at_byte: int | None = None
    """Octets of the buffer that could be read when decompression failed or a cap was met."""
    senseless: bool = False
    """Not one octet could be unpacked, and not because the rest is missing."""

    def close(self) -> None:
        """Let go of the octets. A map is undone when the last window and array over it are gone, never under their feet."""
        self.buffer = b""


def load(source: str | os.PathLike[str] | BinaryIO, max_bytes: int) -> Spooled:
    """All octets of the source, decompressed. Raises ``CaptureFileError`` when it cannot be read."""
    if not isinstance(source, (str, os.PathLike)):
        return _load_file(source, None, max_bytes)
    path = os.fspath(source)
    if path == "-":
        return _load_file(sys.stdin.buffer, None, max_bytes)
    try:
        with open(path, "rb") as file:
            return _load_file(file, path, max_bytes)
    except OSError as error:
        raise CaptureFileError(f"cannot be read: {error.strerror}", path=path) from error


def _load_file(file: BinaryIO, path: str | None, max_bytes: int) -> Spooled:
    mapped = _map(file)
    if mapped is not None:
        codec = _codec_of(mapped[:8])
        if codec is None:
            return Spooled(mapped, path)
        mapped.close()
        file.seek(0)
        return _spool(codec, b"", file, path, max_bytes)
    start = _read_exactly(file, 8)
    return _spool(_codec_of(start), start, file, path, max_bytes)


def _map(file: BinaryIO) -> mmap.mmap | None:
    """The file as a map when it is a regular one that is read from its beginning."""
    try:
        descriptor = file.fileno()
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size == 0 or file.tell() != 0:
            return None
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    except (OSError, io.UnsupportedOperation, ValueError):
        return None


def _read_exactly(file: BinaryIO, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = file.read(count - len(data))
        if not piece:
            break
        data += piece
    return data


# --- codecs -------------------------------------------------------------------------------------------------------------------


class Damaged(Exception):
    """Compressed octets that make no sense. Never leaves this module."""


class EndsTooSoon(Damaged):
    """Compressed octets that make sense as far as they go."""

    def __init__(self, why: str = "the compressed data ends too soon") -> None:
        super().__init__(why)


Codec = Callable[[Iterator[bytes]], Iterator[bytes]]


def _codec_of(start: bytes) -> tuple[str, Codec] | None:
    if start[:3] == b"\x1f\x8b\x08":
        return ".gz", _gunzip
    if start[:4] == b"\x28\xb5\x2f\xfd" or (start[1:4] == b"\x2a\x4d\x18" and 0x50 <= start[0] <= 0x5F):
        return ".zst", _unzstd
    if start[:4] == b"\x04\x22\x4d\x18":
        return ".lz4", _unlz4
    return None


def _gunzip(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """RFC 1952: members one after another; what follows the last one is ignored, as gzip does."""
    inflate = zlib.decompressobj(wbits=31)
    whole = False
    for rest in pieces:
        while rest:
            if inflate.eof:
                if not rest.startswith(b"\x1f"):
                    return
                inflate, whole = zlib.decompressobj(wbits=31), False
            before = inflate.copy()
            try:
                piece = inflate.decompress(rest, STEP_BYTES)
            except zlib.error as error:
                yield from _until_damage(before, rest)
                raise Damaged(str(error).rpartition("data: ")[2]) from error
            yield piece
            rest = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
            whole = inflate.eof
    if not whole:
        raise EndsTooSoon


def _until_damage(inflate: zlib._Decompress, rest: bytes) -> Iterator[bytes]:
    """What comes before the damage in octets of which zlib gave nothing back."""
    for start in range(0, len(rest), SMALL_STEP_BYTES):
        try:
            yield inflate.decompress(rest[start : start + SMALL_STEP_BYTES])
        except zlib.error:
            return


def _unzstd(pieces: Iterator[bytes]) -> Iterator[bytes]:
    import zstandard

    source = cast("IO[bytes]", _Readable(pieces))
    nothing = True
    decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_ZSTD_WINDOW_BYTES)
    with decompressor.stream_reader(source, read_across_frames=True) as reader:
        while True:
            try:
                piece = reader.read(STEP_BYTES)
            except zstandard.ZstdError as error:
                raise Damaged(str(error)) from error
            if not piece:
                break
            nothing = False
            yield piece
    if nothing:
        raise EndsTooSoon("the compressed data holds nothing, or ends too soon")


def _unlz4(pieces: Iterator[bytes]) -> Iterator[bytes]:
    import lz4.frame

    inflate = lz4.frame.LZ4FrameDecompressor()
    for piece in pieces:
        rest: bytes | None = piece
        while rest or not (inflate.needs_input or inflate.eof):
            if inflate.eof:
                inflate = lz4.frame.LZ4FrameDecompressor()
            try:
                yield inflate.decompress(rest or b"", STEP_BYTES)
            except RuntimeError as error:
                raise Damaged(str(error)) from error
            rest = inflate.unused_data if inflate.eof else b""
    if not inflate.eof:
        raise EndsTooSoon


class _Readable(io.RawIOBase):
    """Pieces as a readable file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._rest = piece
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken


# --- spooling -----------------------------------------------------------------------------------------------------------------


def _spool(codec: tuple[str, Codec] | None, start: bytes, file: BinaryIO, path: str | None, max_bytes: int) -> Spooled:
    import tempfile

    suffix, decompress = codec or ("", None)
    counter = _Counter(start, file)
    spool = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115 - closed in _buffer_of, or below
    anomalies: list[Anomaly] = []
    written = 0
    senseless = False
    try:
        for piece in decompress(iter(counter)) if decompress else iter(counter):
            allowed = min(max_bytes, max(FREE_BYTES, MAX_RATIO * counter.count) if decompress else max_bytes)
            spool.write(piece[: max(0, allowed - written)])
            if written + len(piece) > allowed:
                anomalies.append(_cap(allowed, max_bytes))
                written = allowed
                break
            before, written = written, written + len(piece)
            if before < SAMPLE_BYTES <= written and not may_be_capture(_first(spool)):
                break
    except Damaged as error:
        senseless = written == 0 and not isinstance(error, EndsTooSoon)
        anomalies.append(Anomaly(protocol="file", reason=f"damaged {suffix} data: {error}", offset=written))
    except OSError as error:
        spool.close()
        if error.errno == errno.ENOSPC:
            raise CaptureFileError(
                "no room to unpack it", path=path, advice=f"Free space in {tempfile.gettempdir()}, or set TMPDIR."
            ) from error
        raise
    cut_at_byte = written if anomalies else None
    return Spooled(_buffer_of(spool, written), path, suffix, anomalies, cut_at_byte, senseless)


def _first(spool: tempfile.SpooledTemporaryFile[bytes]) -> bytes:
    """The first octets of what is spooled; writing goes on at the end."""
    spool.seek(0)
    start = spool.read(LONGEST_MAGIC_BYTES)
    spool.seek(0, io.SEEK_END)
    return start


def _cap(allowed: int, max_bytes: int) -> Anomaly:
    why = (
        f"larger than {max_bytes} bytes" if allowed == max_bytes else f"unpacks to more than {MAX_RATIO} times its size"
    )
    return Anomaly(protocol="file", reason=f"{why}: reading stopped", offset=allowed)


class _Counter:
    """Pieces of a file, and how many octets they were."""

    def __init__(self, start: bytes, file: BinaryIO) -> None:
        self._start = start
        self._file = file
        self.count = 0

    def __iter__(self) -> Iterator[bytes]:
        read = getattr(self._file, "read1", self._file.read)
        piece = self._start or read(STEP_BYTES)
        while piece:
            self.count += len(piece)
            yield piece
            piece = read(STEP_BYTES)


def _buffer_of(spool: tempfile.SpooledTemporaryFile[bytes], size: int) -> Buffer:
    """The spooled octets as one buffer; the temporary file has no name any more and goes with it."""
    with spool:
        if size <= IN_MEMORY_BYTES:
            spool.seek(0)
            return spool.read()
        spool.flush()
        return mmap.mmap(_descriptor(spool), 0, access=mmap.ACCESS_READ)


def _descriptor(spool: tempfile.SpooledTemporaryFile[bytes]) -> int:
    file: IO[bytes] | tempfile.SpooledTemporaryFile[bytes] = spool
    return file.fileno()
