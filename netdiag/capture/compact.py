"""Packets of a large capture with what they hold copied together, so that one pass over the file replaces many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from netdiag.wire.tables import Buffer, Int64, Packets

MOST_BYTES = 192 << 20
"""What is larger (a single connection may be) stays where it is."""
BLOCK_BITS = 21
"""The system may map so many of a page's neighbours with it: 2 MiB."""
BLOCKS = 16
"""So many blocks are read before their pages are given back."""


def compacted(packets: Packets, buffer: Buffer, release: Callable[[], None]) -> tuple[Packets, Buffer] | None:
    """The packets, in file order, with a buffer of their own in place of the capture's; None when that were too large.

    ``release`` gives pages of the capture back; it is called every few blocks.
    """
    begin = packets.network_offset
    end = packets.payload_offset + packets.captured_payload_bytes
    sizes = end - begin
    if int(sizes.sum()) > MOST_BYTES:
        return None
    shift = np.cumsum(sizes) - sizes - begin
    moved = replace(
        packets, network_offset=packets.network_offset + shift, payload_offset=packets.payload_offset + shift
    )
    own, filled = bytearray(int(sizes.sum())), 0
    with memoryview(buffer) as octets:
        for first, last in pairwise(_stretches(begin)):
            rows = zip(begin[first:last].tolist(), end[first:last].tolist(), strict=True)
            piece = b"".join([octets[a:b] for a, b in rows])
            own[filled : filled + len(piece)] = piece
            filled += len(piece)
            release()
    return moved, own


def _stretches(begin: Int64) -> list[int]:
    """Rows between which pages are given back: each stretch lies in a few blocks of the file."""
    if not len(begin):
        return [0]
    block = np.cumsum(np.diff(begin >> BLOCK_BITS, prepend=begin[0] >> BLOCK_BITS) != 0) // BLOCKS
    return [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), len(begin)]
