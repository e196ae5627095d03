"""IP fragments (RFC 791 section 3.2, RFC 8200 section 4.5) put together across windows.

Only whole packets count, as for the receiver. Their octets stay where they are in the buffer: a TCP segment in fragments becomes one row
per fragment, with the sequence number advanced by its place. For the headers alone the packets are built once more in a scratch buffer and
taken through the same layers as everything else.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from netdiag.wire.cursor import Cursor
from netdiag.wire.fragment import Key, Pending, Piece, pieces_v4, pieces_v6
from netdiag.wire.octets import BIG16, Octets
from netdiag.wire.reassembly import Reassembled, rebuild
from netdiag.wire.tables import NONE, RawPackets

MAX_PENDING = 4096
"""Packets that wait for fragments; the oldest gives way."""
MAX_PIECES = 2048
"""Of one packet: more than any link's MTU makes of 65,535 octets."""
MAX_BEGINNINGS = 65_536
UDP_PROTOCOL, UDP_HEADER = 17, 8
EXPIRES_NS = 60 * 1_000_000_000
"""RFC 8200 section 4.5."""
INCOMPLETE = "ip fragment of an incomplete packet"
REPEATED = "ip fragment seen before"


class Fragments:
    """Fragments of one file that wait for their packet to be whole."""

    def __init__(self) -> None:
        self._pending: dict[Key, Pending] = {}
        self._given_up: Counter[str] = Counter()
        self._beginnings: list[Piece] = []
        """First fragments of UDP datagrams that never became whole."""

    def add(self, octets: Octets, raw: RawPackets, four: Cursor | None, six: Cursor | None) -> Reassembled:
        """Take a window's fragments; return what became whole."""
        pieces = []
        if four is not None and len(four):
            pieces += pieces_v4(octets, raw, four)
        if six is not None and len(six):
            pieces += pieces_v6(octets, raw, six)
        whole: list[Pending] = []
        for key, version, more, piece in sorted(pieces, key=lambda p: p[3].number):
            complete = self._collect(key, version, more, piece)
            if complete is not None:
                whole.append(complete)
        return rebuild(octets, whole) if whole else Reassembled()

    def take_given_up(self, *, all_of_them: bool = False) -> Counter[str]:
        """Fragments that never became a packet, since the last call; with ``all_of_them`` also those still waiting."""
        if all_of_them:
            for key in list(self._pending):
                self._give_up(key)
        given_up, self._given_up = +self._given_up, Counter()
        return given_up

    def beginnings(self, octets: Octets) -> list[dict[str, Any]]:
        """Rows of the datagrams that were given up so far, as far as their first fragment goes: a capture filter with a port in it lets no
        other fragment through, and what is asked and answered stands in front."""
        columns = [np.array([getattr(p, name) for p in self._beginnings], np.int64) for name in ("at", "captured")]
        length, source, destination = (octets.column(columns[0] + place, BIG16) for place in (4, 0, 2))
        return [
            {
                "number": piece.number,
                "captured_at": piece.captured_at,
                "interface": piece.interface,
                "network_offset": piece.network,
                "payload_offset": piece.at + UDP_HEADER,
                "payload_bytes": max(size - UDP_HEADER, 0),
                "captured_payload_bytes": min(piece.captured, size) - UDP_HEADER,
                "source_port": source_port,
                "destination_port": destination_port,
            }
            for piece, size, source_port, destination_port in zip(
                self._beginnings, length.tolist(), source.tolist(), destination.tolist(), strict=True
            )
            if size > UDP_HEADER and piece.captured_at != NONE
        ]

    def _collect(self, key: Key, version: int, more: bool, piece: Piece) -> Pending | None:
        pending = self._pending.get(key)
        if pending is not None and piece.captured_at - pending.pieces[0].captured_at > EXPIRES_NS:
            self._give_up(key)
            pending = None
        if pending is None:
            if len(self._pending) >= MAX_PENDING:
                self._give_up(next(iter(self._pending)))
            pending = self._pending[key] = Pending(key[2], version)
        if len(pending.pieces) >= MAX_PIECES or any(p.place == piece.place for p in pending.pieces[-64:]):
            self._given_up[REPEATED] += 1
            return None
        pending.pieces.append(piece)
        pending.have += piece.length
        if not more:
            pending.total = piece.place + piece.length
        if pending.is_complete():
            return self._pending.pop(key)
        return None

    def _give_up(self, key: Key) -> None:
        pending = self._pending.pop(key)
        self._given_up[INCOMPLETE] += len(pending.pieces)
        first = min(pending.pieces, key=lambda p: p.place)
        begins = pending.protocol == UDP_PROTOCOL and first.place == 0 and first.captured > UDP_HEADER
        if begins and len(self._beginnings) < MAX_BEGINNINGS:
            self._beginnings.append(first)
