"""Many packets on their way through their layers, all at the same kind of header: the table that a layer takes and gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from netdiag.plain import plain
from netdiag.wire.octets import BIG16, BIG32, LITTLE16, LITTLE32, OCTET, Octets
from netdiag.wire.tables import NONE, Int64, Table

UNBOUND = 2**62


@plain(frozen=True, slots=True, kw_only=True)
class Cursor(Table):
    """One row per packet: where its next header begins and how far its octets reach."""

    row: Int64
    """Which packet of the window."""
    at: Int64
    """First octet of the next header."""
    end: Int64
    """First octet behind that was not captured (or that an outer length excludes)."""
    wire_end: Int64
    """First octet behind that was not sent: ``end`` where all was captured."""
    bound: Int64
    """Where a length field of the link layer says that the packet ends; UNBOUND where there is none.

    An IP length that goes beyond is wrong (padding was counted in). Beyond the frame itself it may go: a switch that mirrors packets may
    have cut them."""
    network: Int64
    """The innermost IP header so far; NONE before one was met."""
    code: Int64
    """What the next header is (``codes``)."""

    def step(
        self, code: Int64 | int, advance: Int64 | int, *, wire_end: Int64 | None = None, binding: bool = False
    ) -> Cursor:
        """Behind a header of ``advance`` octets. ``wire_end``: where a length field says that the packet ends, ``binding`` for IP or not."""
        return replace(
            self,
            at=self.at + advance,
            end=self.end if wire_end is None else np.minimum(self.end, wire_end),
            wire_end=self.wire_end if wire_end is None else wire_end,
            bound=self.bound if wire_end is None or not binding else np.minimum(self.bound, wire_end),
            code=self.code * 0 + code,
        )

    def at_network(self) -> Cursor:
        """The same with this place noted as the innermost IP header."""
        return replace(self, network=self.at)


Peel = Callable[[Octets, Cursor], Cursor]


@dataclass(frozen=True, slots=True)
class Layer:
    """A kind of header: ``peel`` gets rows that have at least ``header_bytes`` captured octets, and returns them one header further in."""

    name: str
    header_bytes: int
    peel: Peel


def u8(octets: Octets, cursor: Cursor, offset: int) -> Int64:
    """One octet of each row's header."""
    return octets.column(cursor.at + offset, OCTET)


def u16(octets: Octets, cursor: Cursor, offset: int) -> Int64:
    """Two octets, network order."""
    return octets.column(cursor.at + offset, BIG16)


def u32(octets: Octets, cursor: Cursor, offset: int) -> Int64:
    """Four octets, network order."""
    return octets.column(cursor.at + offset, BIG32)


def le16(octets: Octets, cursor: Cursor, offset: int) -> Int64:
    """Two octets, little-endian."""
    return octets.column(cursor.at + offset, LITTLE16)


def le32(octets: Octets, cursor: Cursor, offset: int) -> Int64:
    """Four octets, little-endian."""
    return octets.column(cursor.at + offset, LITTLE32)


def start(row: Int64, at: Int64, captured_bytes: Int64, original_bytes: Int64, code: Int64) -> Cursor:
    """Packets at their first octet."""
    end = at + captured_bytes
    return Cursor(
        row=row,
        at=at,
        end=end,
        wire_end=np.maximum(at + original_bytes, end),
        bound=np.full(len(row), UNBOUND, np.int64),
        network=np.full(len(row), NONE, np.int64),
        code=code,
    )
