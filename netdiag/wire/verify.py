"""Hashed endpoint keys checked against the octets: two pairs of endpoints with one key must not become one connection."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netdiag.wire.address import HASHED
from netdiag.wire.octets import Octets
from netdiag.wire.tables import Bool, Buffer, Int64, Packets, UInt64

_NO_KEY = np.uint64(2**64 - 1)


def told_apart(packets: Packets, order: Int64, new: Bool, buffer: Buffer) -> tuple[UInt64, UInt64] | None:
    """New (low, high) keys under which no two pairs of endpoints share one; None when the keys are right as they are (nearly always).

    IPv4 keys hold address and port themselves and cannot collide. ``order`` and ``new`` group the rows by the present keys.
    """
    hashed = ((packets.low | packets.high) & HASHED) != 0
    if not hashed.any():
        return None
    places = np.flatnonzero(hashed[order])
    rows = order[places]
    names = _addresses(packets, rows, buffer)
    group = np.cumsum(new[places]) - 1
    stray = (names != names[np.flatnonzero(new[places])][group]).any(axis=1)
    if not stray.any():
        return None
    low, high = packets.low.copy(), packets.high.copy()
    _, identity = np.unique(names[stray], axis=0, return_inverse=True)
    low[rows[stray]] = _NO_KEY
    high[rows[stray]] = identity.reshape(-1).astype(np.uint64)
    return low, high


def _addresses(packets: Packets, rows: Int64, buffer: Buffer) -> NDArray[Any]:
    """Both addresses of each row as four words, the ``low`` endpoint's first.

    Ports, which later IP fragments lack, need no comparison: the hash mixes the port of one address by a bijection, of which it keeps all
    bits but one.
    """
    octets = Octets(buffer)
    addresses = np.zeros((len(rows), 2, 16), np.uint8)
    network = packets.network_offset[rows]
    six = octets.rows(network, np.dtype("u1")) >> 4 == 6
    if six.any():
        addresses[six] = octets.rows(network[six] + 8, np.dtype("V32")).view(np.uint8).reshape(-1, 2, 16)
    if not six.all():
        addresses[~six, :, :4] = octets.rows(network[~six] + 12, np.dtype("V8")).view(np.uint8).reshape(-1, 2, 4)
    swapped = packets.direction[rows] == 1
    addresses[swapped] = addresses[swapped][:, ::-1]
    return np.ascontiguousarray(addresses).view(np.uint64).reshape(-1, 4)
