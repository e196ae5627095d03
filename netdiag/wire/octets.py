"""Unaligned reads of fields and packed rows at many offsets of one buffer at once."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netdiag.wire.tables import Buffer, Int64, UInt8

BIG16, BIG32 = np.dtype(">u2"), np.dtype(">u4")
LITTLE16, LITTLE32 = np.dtype("<u2"), np.dtype("<u4")
OCTET = np.dtype("u1")


LARGE_BYTES = 2 << 30
"""From this size on, the pages of a map that were read are given back now and then."""
MOST_TOUCHED_BYTES = 32 << 20
STEP_ROWS = 256
NEIGHBOURHOOD_BYTES = 2 << 20
"""The system may map so many of a page's neighbours with it."""


class _Touched:
    """About how much of large maps was read since pages were last given back."""

    bytes = 0


_TOUCHED = _Touched()


class Octets:
    """A buffer seen as an array of any type at *every* octet offset. Nothing is copied but what is gathered.

    Reads beyond the end of the buffer yield zero octets, so a caller may gather first and compare with the packet's end afterwards.
    """

    __slots__ = ("_octets", "_tail", "_tail_start", "_views", "buffer", "size")

    TAIL_BYTES = 512
    """The widest row."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        # Views must stand on an array that holds the buffer's export: ``np.ndarray`` over the buffer itself does not, and would
        # point into nothing after somebody closes a map.
        self._octets = np.frombuffer(buffer, np.uint8)
        self.size = self._octets.size
        self._views: dict[Any, NDArray[Any]] = {}
        self._tail_start = max(0, self.size - self.TAIL_BYTES)
        self._tail: NDArray[np.uint8] | None = None

    def rows(self, offsets: Int64, dtype: np.dtype[Any]) -> NDArray[Any]:
        """One ``dtype`` value (structured or not) from each offset, copied and contiguous."""
        if offsets.size == 0:
            return np.empty(0, dtype)
        last = self.size - dtype.itemsize
        if int(offsets.max()) <= last and int(offsets.min()) >= 0:
            return self._gather(offsets, dtype)
        return self._gather_near_end(offsets, dtype, last)

    def column(self, offsets: Int64, dtype: np.dtype[Any]) -> Int64:
        """One unsigned field from each offset, as int64."""
        return self.rows(offsets, dtype).astype(np.int64)

    def text(self, start: int, end: int) -> bytes:
        """The octets of one range, cut at the end of the buffer."""
        return bytes(self.buffer[max(0, start) : max(0, min(end, self.size))])

    def run(self, start: int, end: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """``dtype`` at every offset from ``start`` to ``end``, without copying; shorter near the end of the buffer."""
        return self.view(dtype)[max(0, start) : max(0, end)]

    def release(self, start: int, end: int) -> None:
        """Give the memory of whole pages in this range back to the system; reading them again is only slower."""
        if not isinstance(self.buffer, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
            return
        first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        length = end // mmap.PAGESIZE * mmap.PAGESIZE - first
        if length > 0:
            self.buffer.madvise(mmap.MADV_DONTNEED, first, length)
            _TOUCHED.bytes = 0

    def view(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """``dtype`` at every offset where it fits whole; index it with offsets. Structured types come back as void rows."""
        kind = np.dtype(f"V{dtype.itemsize}") if dtype.names else dtype
        view = self._views.get(kind)
        if view is None:
            count = max(0, self.size - kind.itemsize + 1)
            view = np.ndarray((count,), kind, self._octets, 0, (1,)) if count else np.empty(0, kind)
            self._views[kind] = view
        return view

    def _gather(self, offsets: Int64, dtype: np.dtype[Any]) -> NDArray[Any]:
        rows = self.view(dtype)[offsets] if self.size < LARGE_BYTES else self._gather_in_steps(offsets, dtype)
        return rows.view(dtype) if dtype.names else rows

    def _gather_in_steps(self, offsets: Int64, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Rows from all over a large file: each touches pages that count as this process's memory until they are given back."""
        view = self.view(dtype)
        out = np.empty(len(offsets), view.dtype)
        for first in range(0, len(offsets), STEP_ROWS):
            part = offsets[first : first + STEP_ROWS]
            out[first : first + STEP_ROWS] = view[part]
            _TOUCHED.bytes += min(int(part.max()) - int(part.min()), len(part) * NEIGHBOURHOOD_BYTES)
            if _TOUCHED.bytes > MOST_TOUCHED_BYTES:
                self.release(0, self.size)
        return out

    def _gather_near_end(self, offsets: Int64, dtype: np.dtype[Any], last: int) -> NDArray[Any]:
        out = np.zeros(len(offsets), dtype)
        inside = (offsets <= last) & (offsets >= 0)
        if inside.any():
            out[inside] = self._gather(offsets[inside], dtype)
        near = (offsets > last) & (offsets < self.size)
        if near.any():
            tail = self._padded_tail()
            view = np.ndarray((len(tail) - dtype.itemsize + 1,), f"V{dtype.itemsize}", tail, 0, (1,))
            rows = view[offsets[near] - self._tail_start]
            out[near] = rows.view(dtype)
        return out

    def _padded_tail(self) -> UInt8:
        if self._tail is None:
            text = self.text(self._tail_start, self.size)
            self._tail = np.frombuffer(text + bytes(2 * self.TAIL_BYTES), np.uint8).copy()
        return self._tail
