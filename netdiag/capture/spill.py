"""Columns of captures with many millions of packets, in an unnamed temporary file: it vanishes with the last reference, whatever happens."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netdiag.analysis.storage import InMemory, joined
from netdiag.wire.decode import COLUMN_TYPES, RAW_TYPES
from netdiag.wire.octets import Octets
from netdiag.wire.tables import Buffer, Int64, Packets, UInt64

IN_MEMORY_PACKETS = 2_000_000
"""Up to about so many packets everything stays in memory (some 0.8 GB at most, while the last parts are judged)."""
PARTITION_PACKETS = 250_000
MOST_PARTITIONS = 1024
_TYPES = RAW_TYPES | COLUMN_TYPES
_ROW = np.dtype([(name, kind) for name, kind in _TYPES.items()])
_MIX = np.uint64(0x9E3779B97F4A7C15)


class Spill:
    """A ``Storage`` that decides with the first window whether the capture fits into memory.

    ``buffer`` is the capture's; its pages are given back together with the columns' where memory is dear.
    """

    def __init__(self, buffer: Buffer) -> None:
        self._octets = Octets(buffer)
        self._memory = InMemory()
        self._file: Any = None
        self._chunks: list[list[tuple[int, int]]] = []
        self._maps: list[mmap.mmap] = []
        self._decided = False

    @property
    def bounded(self) -> bool:
        """As ``Storage``."""
        return self._file is not None

    def add(self, packets: Packets, read: float) -> None:
        """As ``Storage``."""
        if not self._decided:
            self._decide(len(packets) / max(read, 1e-6))
        if self._file is None:
            self._memory.add(packets, read)
        else:
            self._write(packets)

    def partitions(self) -> Sequence[Callable[[], Packets]]:
        """As ``Storage``."""
        if self._file is None:
            return self._memory.partitions()
        return [self._reader(number) for number in range(len(self._chunks)) if self._chunks[number]] or [
            lambda: joined([])
        ]

    def put(self, columns: Int64) -> Callable[[], Int64]:
        """As ``Storage``."""
        if self._file is None:
            return lambda: columns
        place, shape = self._file.seek(0, 2), columns.shape
        self._file.write(np.ascontiguousarray(columns))

        def load() -> Int64:
            again = np.empty(shape, np.int64)
            self._file.seek(place)
            self._file.readinto(again)
            return again

        return load

    def room(self, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """An array in a file of its own, where memory is dear."""
        if self._file is None or not count:
            return np.empty(count, dtype)
        with tempfile.TemporaryFile(prefix="netdiag-") as file:
            file.truncate(count * dtype.itemsize)
            memory = mmap.mmap(file.fileno(), count * dtype.itemsize)
        self._maps.append(memory)
        return np.frombuffer(memory, dtype)

    def release(self) -> None:
        """As ``Storage``."""
        if self._file is None:
            return
        self._octets.release(0, self._octets.size)
        if hasattr(mmap, "MADV_DONTNEED"):
            for memory in self._maps:  # of a file: what was written is in the file
                memory.madvise(mmap.MADV_DONTNEED)

    def _decide(self, expected: float) -> None:
        self._decided = True
        if expected > IN_MEMORY_PACKETS:
            count = min(MOST_PARTITIONS, int(expected / PARTITION_PACKETS) + 1)
            self._file = tempfile.TemporaryFile(prefix="netdiag-")  # noqa: SIM115  closed with the last reference
            self._chunks = [[] for _ in range(count)]

    def _write(self, packets: Packets) -> None:
        partition = _partition(packets.low, packets.high, len(self._chunks))
        order = np.argsort(partition, kind="stable")
        rows = np.empty(len(packets), _ROW)
        for name in _TYPES:
            rows[name] = getattr(packets, name)[order]
        bounds = np.searchsorted(partition[order], np.arange(len(self._chunks) + 1, dtype=partition.dtype)).tolist()
        place = self._file.seek(0, 2)
        self._file.write(rows.view(np.uint8))
        for number, (begin, end) in enumerate(pairwise(bounds)):
            if begin < end:
                self._chunks[number].append((place + begin * _ROW.itemsize, end - begin))

    def _reader(self, number: int) -> Callable[[], Packets]:
        def read() -> Packets:
            chunks = self._chunks[number]
            rows = np.empty(sum(count for _, count in chunks), _ROW)
            done = 0
            for place, count in chunks:
                self._file.seek(place)
                self._file.readinto(rows[done : done + count].view(np.uint8))
                done += count
            return Packets(**{name: np.ascontiguousarray(rows[name]) for name in _TYPES})

        return read


def _partition(low: UInt64, high: UInt64, count: int) -> NDArray[np.uint16]:
    """The same for all packets of a pair of endpoints."""
    mixed = (low * _MIX) ^ (high * (_MIX | np.uint64(1 << 40)))
    mixed ^= mixed >> np.uint64(32)
    mixed *= _MIX
    found: Int64 = (mixed >> np.uint64(40)).astype(np.int64) % count
    return found.astype(np.uint16)
