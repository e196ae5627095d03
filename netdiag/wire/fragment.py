"""One IP fragment, read from its header, and what is collected of its packet (RFC 791 section 3.2, RFC 8200 section 4.5)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from netdiag.plain import plain
from netdiag.wire.cursor import Cursor, u8, u16
from netdiag.wire.octets import BIG16, BIG32, OCTET, Octets
from netdiag.wire.tables import Int64, RawPackets

Key = tuple[bytes, int, int]
"""Addresses, identification, protocol."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One fragment."""

    number: int
    captured_at: int
    interface: int
    network: int
    """Its IP header."""
    at: int
    """Its octets in the buffer …"""
    captured: int
    """… how many of them there are …"""
    place: int
    """… and where in the packet they belong."""
    length: int


@plain(slots=True)
class Pending:
    """A packet whose fragments are being collected."""

    protocol: int
    version: int
    pieces: list[Piece] = field(default_factory=list)
    total: int | None = None
    """Length of the whole payload; None until the last fragment was seen."""
    have: int = 0
    """Octets collected, overlaps counted twice."""

    def is_complete(self) -> bool:
        """Whether there is no hole."""
        if self.total is None or self.have < self.total:
            return False
        reached = 0
        for piece in sorted(self.pieces, key=lambda p: p.place):
            if piece.place > reached:
                return False
            reached = max(reached, piece.place + piece.length)
        return reached >= self.total


Found = tuple[Key, int, bool, Piece]
"""Key, IP version, whether more follow, and the fragment."""


def pieces_v4(octets: Octets, raw: RawPackets, cursor: Cursor) -> list[Found]:
    """Fragments whose payload begins at the cursor, behind their IPv4 headers."""
    network = cursor.network
    field_ = octets.column(network + 6, BIG16)
    identification, protocol = octets.column(network + 4, BIG16), octets.column(network + 9, OCTET)
    return [
        (
            (octets.text(int(n) + 12, int(n) + 20), ident, proto),
            4,
            bool(bits & 0x2000),
            piece,
        )
        for n, ident, proto, bits, piece in zip(
            network.tolist(),
            identification.tolist(),
            protocol.tolist(),
            field_.tolist(),
            _pieces(raw, cursor, (field_ & 0x1FFF) * 8, cursor.at),
            strict=True,
        )
    ]


def pieces_v6(octets: Octets, raw: RawPackets, cursor: Cursor) -> list[Found]:
    """Fragments whose fragment headers begin at the cursor."""
    field_ = u16(octets, cursor, 2)
    return [
        (
            (octets.text(n + 8, n + 40), ident, proto),
            6,
            bool(bits & 1),
            piece,
        )
        for n, ident, proto, bits, piece in zip(
            cursor.network.tolist(),
            octets.column(cursor.at + 4, BIG32).tolist(),
            u8(octets, cursor, 0).tolist(),
            field_.tolist(),
            _pieces(raw, cursor, field_ & 0xFFF8, cursor.at + 8),
            strict=True,
        )
    ]


def _pieces(raw: RawPackets, cursor: Cursor, place: Int64, at: Int64) -> list[Piece]:
    rows = cursor.row
    length = np.maximum(cursor.wire_end - at, 0)
    captured = np.clip(cursor.end - at, 0, length)
    columns = (
        raw.number[rows],
        raw.captured_at[rows],
        raw.interface[rows],
        cursor.network,
        at,
        captured,
        place,
        length,
    )
    return [Piece(*values) for values in zip(*(c.tolist() for c in columns), strict=True)]
