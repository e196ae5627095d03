"""Columns of captures with many millions of packets, in an unnamed temporary file: it vanishes with the last reference, whatever happens."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netdiag.analysis.sharing import Runner, one_by_one
from netdiag.analysis.storage import InMemory, Loaded, joined
from netdiag.capture.compact import compacted
from netdiag.wire.decode import COLUMN_TYPES, RAW_TYPES
from netdiag.wire.octets import Octets
from netdiag.wire.tables import Buffer, Int64, Packets, UInt64

IN_MEMORY_PACKETS = 2_000_000
"""Up to about so many packets everything stays in memory (some 0.8 GB at most, while the last parts are judged)."""
PARTITION_PACKETS = 250_000
PARTITION_BYTES = 48 << 20
SHARES = 32
"""Endpoint pairs are divided by the window in which they first appear, so that what a partition's packets say lies close together in the file,
and by their endpoints, because those of one window may have most of the packets."""
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
        self._cells: dict[int, list[_Chunk]] = {}
        self._windows = 0
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
            self._write(packets)

    def partitions(self, run: Runner = one_by_one) -> Sequence[Callable[[], Loaded]]:
        """As ``Storage``."""
        if self._file is None:
            return self._memory.partitions(run)
        self._pairs = _Pairs()  # all are known now
        together = _together([self._cells[cell] for cell in sorted(self._cells)])
        return [partial(self._read, chunks) for chunks in together] or [lambda: Loaded(joined([]))]

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
        import tempfile

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
            import tempfile

            self._file = tempfile.TemporaryFile(prefix="netdiag-")  # noqa: SIM115  closed with the last reference

    def _write(self, packets: Packets) -> None:
        cell = self._pairs.cells(_hashes(packets.low, packets.high), self._windows)
        self._windows += 1
        order = np.argsort(cell, kind="stable")
        rows = np.empty(len(packets), _ROW)
        for name in _TYPES:
            rows[name] = getattr(packets, name)[order]
        cell = cell[order]
        begins = np.flatnonzero(np.diff(cell, prepend=-1))
        place = self._file.seek(0, 2)
        self._file.write(rows.view(np.uint8))
        octets = rows["payload_offset"] - rows["network_offset"] + rows["captured_payload_bytes"]
        sizes = np.add.reduceat(octets, begins).tolist() if len(begins) else []
        edges = pairwise([*begins.tolist(), len(rows)])
        for number, (begin, end), size in zip(cell[begins].tolist(), edges, sizes, strict=True):
            chunk = _Chunk(place + begin * _ROW.itemsize, end - begin, size)
            self._cells.setdefault(number, []).append(chunk)

    def _read(self, chunks: list[_Chunk]) -> Loaded:
        rows = np.empty(sum(chunk.packets for chunk in chunks), _ROW)
        done = 0
        for chunk in sorted(chunks):
            self._file.seek(chunk.place)
            self._file.readinto(rows[done : done + chunk.packets].view(np.uint8))
            done += chunk.packets
        rows = rows[np.argsort(rows["number"], kind="stable")]
        packets = Packets(**{name: np.ascontiguousarray(rows[name]) for name in _TYPES})
        del rows
        moved = compacted(packets, self._octets.buffer, self.release)
        return Loaded(packets) if moved is None else Loaded(*moved)


class _Chunk(NamedTuple):
    """Packets that lie together in the file of columns: where, how many, and the octets that they hold."""

    place: int
    packets: int
    octets: int


class _Pairs:
    """In which cell each pair of endpoints is. Pairs are known by a hash: two with the same one are merely in the same cell."""

    def __init__(self) -> None:
        self._known = np.empty(0, np.uint64)
        self._window = np.empty(0, np.uint32)

    def cells(self, hashes: UInt64, window: int) -> Int64:
        """Of each packet; pairs that were not seen before belong to the present window."""
        own, back = np.unique(hashes, return_inverse=True)
        place = np.searchsorted(self._known, own)
        known = place < len(self._known)
        known[known] = self._known[place[known]] == own[known]
        windows = np.full(len(own), window, np.uint32)
        windows[known] = self._window[place[known]]
        self._known = np.insert(self._known, place[~known], own[~known])
        self._window = np.insert(self._window, place[~known], windows[~known])
        share = (own >> np.uint64(20)).astype(np.int64) % SHARES
        found: Int64 = (windows.astype(np.int64) * SHARES + share)[back]
        return found


def _hashes(low: UInt64, high: UInt64) -> UInt64:
    mixed = (low * _MIX) ^ (high * (_MIX | np.uint64(1 << 40)))
    mixed ^= mixed >> np.uint64(32)
    return mixed * _MIX


def _together(cells: Sequence[list[_Chunk]]) -> list[list[_Chunk]]:
    """Small neighbouring cells put together."""
    found: list[list[_Chunk]] = []
    packets = octets = 0
    for cell in cells:
        more, larger = sum(chunk.packets for chunk in cell), sum(chunk.octets for chunk in cell)
        if found and packets + more <= PARTITION_PACKETS and octets + larger <= PARTITION_BYTES:
            found[-1] += cell
            packets, octets = packets + more, octets + larger
        else:
            found.append(list(cell))
            packets, octets = more, larger
    return found
