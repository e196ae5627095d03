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
PERIODS = 128
"""Endpoint pairs are divided by when they first appear, so that what a partition's packets say lies close together in the file,"""
SHARES = 32
"""and by their endpoints, because those of one period may have most of the packets."""
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
        self._pairs = _Pairs()
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
            self._write(packets, min(PERIODS - 1, int(read * PERIODS)))

    def partitions(self) -> Sequence[Callable[[], Packets]]:
        """As ``Storage``."""
        if self._file is None:
            return self._memory.partitions()
        self._pairs = _Pairs()  # all are known now
        return [self._reader(chunks) for chunks in _joined_shares(self._chunks)] or [lambda: joined([])]

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
            self._file = tempfile.TemporaryFile(prefix="netdiag-")  # noqa: SIM115  closed with the last reference
            self._chunks = [[] for _ in range(PERIODS * SHARES)]

    def _write(self, packets: Packets, period: int) -> None:
        partition = self._pairs.partitions(_hashes(packets.low, packets.high), period)
        order = np.argsort(partition, kind="stable")
        rows = np.empty(len(packets), _ROW)
        for name in _TYPES:
            rows[name] = getattr(packets, name)[order]
        partition = partition[order]
        begins = np.flatnonzero(np.diff(partition, prepend=-1))
        place = self._file.seek(0, 2)
        self._file.write(rows.view(np.uint8))
        for number, (begin, end) in zip(
            partition[begins].tolist(), pairwise([*begins.tolist(), len(rows)]), strict=True
        ):
            self._chunks[number].append((place + begin * _ROW.itemsize, end - begin))

    def _reader(self, chunks: list[tuple[int, int]]) -> Callable[[], Packets]:
        def read() -> Packets:
            rows = np.empty(sum(count for _, count in chunks), _ROW)
            done = 0
            for place, count in sorted(chunks):
                self._file.seek(place)
                self._file.readinto(rows[done : done + count].view(np.uint8))
                done += count
            rows = rows[np.argsort(rows["number"], kind="stable")]
            return Packets(**{name: np.ascontiguousarray(rows[name]) for name in _TYPES})

        return read


class _Pairs:
    """In which partition each pair of endpoints is. Pairs are known by a hash: two with the same one are merely in the same partition."""

    def __init__(self) -> None:
        self._known = np.empty(0, np.uint64)
        self._period = np.empty(0, np.uint8)

    def partitions(self, hashes: UInt64, period: int) -> NDArray[np.int16]:
        """Of each packet; pairs that were not seen before belong to the present period."""
        own, back = np.unique(hashes, return_inverse=True)
        place = np.searchsorted(self._known, own)
        known = place < len(self._known)
        known[known] = self._known[place[known]] == own[known]
        periods = np.full(len(own), period, np.uint8)
        periods[known] = self._period[place[known]]
        self._known = np.insert(self._known, place[~known], own[~known])
        self._period = np.insert(self._period, place[~known], periods[~known])
        share = (own >> np.uint64(20)).astype(np.int64) % SHARES
        found: NDArray[np.int16] = (periods.astype(np.int64) * SHARES + share).astype(np.int16)[back]
        return found


def _hashes(low: UInt64, high: UInt64) -> UInt64:
    mixed = (low * _MIX) ^ (high * (_MIX | np.uint64(1 << 40)))
    mixed ^= mixed >> np.uint64(32)
    return mixed * _MIX


def _joined_shares(chunks: Sequence[list[tuple[int, int]]]) -> list[list[tuple[int, int]]]:
    """Small neighbouring partitions put together."""
    found: list[list[tuple[int, int]]] = []
    size = 0
    for one in chunks:
        packets = sum(count for _, count in one)
        if found and size + packets <= PARTITION_PACKETS:
            found[-1] += one
            size += packets
        elif packets:
            found.append(list(one))
            size = packets
    return found
