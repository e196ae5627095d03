"""Open a capture file, whatever it is: by what is in it, never by its name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType
from typing import BinaryIO, Protocol

from netdiag.capture.compression import DEFAULT_MAX_BYTES, Spooled, load
from netdiag.capture.facts import Comment, FileFacts
from netdiag.capture.formats import LONGEST_MAGIC_BYTES, UNKNOWN, cut_magic, refuse
from netdiag.capture.pcap import MAGICS, PcapReader
from netdiag.capture.pcapng import PcapngReader, is_pcapng
from netdiag.capture.snoop import SnoopReader, is_snoop
from netdiag.errors import CaptureFileError
from netdiag.records.anomaly import Anomaly
from netdiag.wire.octets import LARGE_BYTES, Octets
from netdiag.wire.tables import Buffer, Interface, RawPackets, Window

WINDOW_BYTES, LARGE_WINDOW_BYTES = 256 << 20, 64 << 20
"""How much of a file, and of a large one, is read at once: the more, the more lanes go in step; but its pages count as memory meanwhile."""
JOINED_BYTES = 32 << 20
MAX_JOINED_PACKETS = 1 << 16


def open_capture(source: str | os.PathLike[str] | BinaryIO, *, max_bytes: int = DEFAULT_MAX_BYTES) -> CaptureFile:
    """A capture file by path, ``-`` (standard input), or an open binary file; compressed or not; a regular file, a pipe or a FIFO.

    What cannot be mapped is written to an unnamed temporary file first, of at most ``max_bytes``. Raises ``CaptureFileError`` when it
    cannot be opened or is no capture at all, ``UnsupportedFormat`` for a recognised format that netdiag does not read. A damaged or cut
    file opens; its anomalies say so.
    """
    spooled = load(source, max_bytes)
    try:
        return CaptureFile(spooled)
    except BaseException:
        spooled.close()
        raise


class Reader(Protocol):
    """One file format."""

    format: str

    def windows(self, window_bytes: int) -> Iterator[Window]:
        """All packets, in file order."""


class CaptureFile:
    """An open capture file: windows over one buffer, and what was learnt on the way (complete after the last window).

    A context manager. The buffer stays valid while windows or arrays made from it are alive, also after ``close``.
    """

    def __init__(self, spooled: Spooled) -> None:
        self._spooled = spooled
        self._octets = Octets(spooled.buffer)
        self._facts = FileFacts(anomalies=list(spooled.anomalies), cut_at_byte=spooled.cut_at_byte)
        self.path: str | None = spooled.path
        """None for standard input and unnamed files."""
        self.format: str = self._reader(self._facts).format + spooled.suffix
        """``pcap``, ``pcap-ns``, ``pcap-modified``, ``pcapng``, ``snoop``, ``unknown`` (cut inside its magic number); with ``.gz``,
        ``.zst`` or ``.lz4`` appended where compressed."""

    def windows(self, window_bytes: int | None = None, *, release: bool = True) -> Iterator[Window]:
        """All packets in windows of at most about ``window_bytes`` of the file. Reading starts from the beginning each time.

        With ``release`` the pages of earlier windows are given back to the system when a later one is asked for: they stay readable,
        but no longer count as this process's memory until they are touched again.
        """
        self._facts = FileFacts(anomalies=list(self._spooled.anomalies), cut_at_byte=self._spooled.cut_at_byte)
        behind = 0
        if window_bytes is None:
            window_bytes = WINDOW_BYTES if self._octets.size < LARGE_BYTES else LARGE_WINDOW_BYTES
        for window in _joined(self._reader(self._facts).windows(window_bytes), min(window_bytes // 2, JOINED_BYTES)):
            yield window
            if release:
                self.release(behind, window.end_offset)
            behind = window.end_offset

    def release(self, start: int, end: int) -> None:
        """Give the memory of whole pages in this range back to the system; reading them again is only slower."""
        self._octets.release(start, end)

    @property
    def buffer(self) -> Buffer:
        """The octets of the (decompressed) file, one buffer for its whole life."""
        return self._spooled.buffer

    @property
    def size_bytes(self) -> int:
        """Of the (decompressed) file."""
        return self._octets.size

    @property
    def anomalies(self) -> list[Anomaly]:
        """Damage found so far."""
        return self._facts.anomalies

    @property
    def cut_at_byte(self) -> int | None:
        """Where a cut or damaged file first stopped being readable; None for a whole one (so far)."""
        return self._facts.cut_at_byte

    @property
    def dropped_packets(self) -> int | None:
        """What the capturing system says it dropped; None when it does not say."""
        return self._facts.dropped_packets

    @property
    def timestamp_resolution_ns(self) -> int | None:
        """Of the coarsest interface; None before one was read."""
        return self._facts.timestamp_resolution_ns

    @property
    def secrets(self) -> list[bytes]:
        """TLS key log text of the decryption secrets blocks so far."""
        return self._facts.secrets

    @property
    def comments(self) -> list[Comment]:
        """Comments in the file so far."""
        return self._facts.comments

    @property
    def interfaces(self) -> tuple[Interface, ...]:
        """Capture interfaces so far, over all sections."""
        return tuple(self._facts.interfaces)

    @property
    def packets(self) -> int:
        """Frames so far, as Wireshark counts them."""
        return self._facts.packets

    def close(self) -> None:
        """Let go of the file; what was read from it stays valid. Harmless to repeat."""
        self._spooled.close()
        self._octets = Octets(b"")

    def __enter__(self) -> CaptureFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _reader(self, facts: FileFacts) -> Reader:
        start = self._octets.text(0, LONGEST_MAGIC_BYTES)
        if start[:4] in MAGICS:
            return PcapReader(self._octets, facts)
        if is_pcapng(self._octets):
            return PcapngReader(self._octets, facts)
        if is_snoop(self._octets):
            return SnoopReader(self._octets, facts)
        cut = cut_magic(start) if self._octets.size == len(start) else None
        if cut is not None:
            return CutMagic(cut, self._octets, facts)
        if self._spooled.senseless:
            raise CaptureFileError(f"nothing can be unpacked: {facts.anomalies[0].reason}", path=self._spooled.path)
        if self._octets.size == 0 and facts.anomalies:
            return CutMagic("compressed capture", self._octets, facts)
        raise refuse(self._octets, self._spooled.path)


def _joined(windows: Iterator[Window], least_bytes: int) -> Iterator[Window]:
    """Windows of a useful size out of the many small ones that a damaged file yields."""
    parts: list[RawPackets] = []
    start = count = 0
    last: Window | None = None
    for last in windows:
        parts.append(last.packets)
        count += len(last.packets)
        if last.end_offset - start >= least_bytes or count >= MAX_JOINED_PACKETS:
            yield _join(parts, last)
            parts, count, start = [], 0, last.end_offset
    if parts and last is not None:
        yield _join(parts, last)


def _join(parts: list[RawPackets], last: Window) -> Window:
    """One window of all the packets; interfaces are those that the last part knew."""
    if len(parts) == 1:
        return last
    return Window(
        buffer=last.buffer,
        packets=RawPackets.concat(parts),
        interfaces=last.interfaces,
        end_offset=last.end_offset,
    )


class CutMagic:
    """A file that ends inside the number that says what it is: cut at its very beginning."""

    format = UNKNOWN

    def __init__(self, name: str, octets: Octets, facts: FileFacts) -> None:
        self._name = name
        self._octets = octets
        self._facts = facts

    def windows(self, window_bytes: int) -> Iterator[Window]:
        """None."""
        if self._octets.size == 0 and self._facts.anomalies:
            return
        self._facts.cut(f"the file ends after {self._octets.size} octets, inside the magic number of a {self._name}", 0)
        yield from ()
