"""IP fragments (RFC 791 section 3.2, RFC 8200 section 4.5) put together across windows.

Only whole packets count, as for the receiver. Their octets stay where they are in the buffer: a TCP segment in fragments becomes one row
per fragment, with the sequence number advanced by its place. For the headers alone the packets are built once more in a scratch buffer and
taken through the same layers as everything else.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from netdiag.plain import plain
from netdiag.wire import layers, tcp, udp
from netdiag.wire.codes import IPV4, IPV6, TCP, Inner
from netdiag.wire.cursor import Cursor, start, u8, u16
from netdiag.wire.octets import BIG16, BIG32, OCTET, Octets
from netdiag.wire.tables import NONE, Int64, RawPackets

MAX_PENDING = 4096
"""Packets that wait for fragments; the oldest gives way."""
MAX_PIECES = 2048
"""Of one packet: more than any link's MTU makes of 65,535 octets."""
MAX_BEGINNINGS = 65_536
UDP_PROTOCOL, UDP_HEADER = 17, 8
EXPIRES_NS = 60 * 1_000_000_000
"""RFC 8200 section 4.5."""
FIN, SYN, PSH, ACK = 1, 2, 8, 16
INCOMPLETE = "ip fragment of an incomplete packet"
REPEATED = "ip fragment seen before"

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


@plain(slots=True)
class Reassembled:
    """Rows from fragments, as (column name -> value)."""

    packets: list[dict[str, Any]] = field(default_factory=list)
    datagrams: list[dict[str, Any]] = field(default_factory=list)
    contents: dict[int, bytes] = field(default_factory=dict)
    """Payload of each datagram, by its frame number, since it is not in one place of the buffer."""
    ended: Counter[int] = field(default_factory=Counter)
    """Fragments of packets that are neither, by code."""


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
            pieces += _pieces_v4(octets, raw, four)
        if six is not None and len(six):
            pieces += _pieces_v6(octets, raw, six)
        whole: list[Pending] = []
        for key, version, more, piece in sorted(pieces, key=lambda p: p[3].number):
            complete = self._collect(key, version, more, piece)
            if complete is not None:
                whole.append(complete)
        return _rebuild(octets, whole) if whole else Reassembled()

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


# --- fragments out of their headers -------------------------------------------------------------------------------------------

Found = tuple[Key, int, bool, Piece]
"""Key, IP version, whether more follow, and the fragment."""


def _pieces_v4(octets: Octets, raw: RawPackets, cursor: Cursor) -> list[Found]:
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


def _pieces_v6(octets: Octets, raw: RawPackets, cursor: Cursor) -> list[Found]:
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


# --- whole packets ------------------------------------------------------------------------------------------------------------


def _rebuild(octets: Octets, whole: list[Pending]) -> Reassembled:
    """Build the packets in a scratch buffer, take them through the layers, and map what comes out back to the fragments."""
    scratch, at, lengths, captured = bytearray(), [], [], []
    for packet in whole:
        at.append(len(scratch))
        header, payload, contiguous = _packet(octets, packet)
        scratch += header + payload
        lengths.append(len(header) + len(payload))
        captured.append(len(header) + contiguous)
    built = Octets(bytes(scratch))
    cursor = start(
        np.arange(len(whole)),
        np.array(at, np.int64),
        np.array(captured, np.int64),
        np.array(lengths, np.int64),
        np.array([IPV4 if p.version == 4 else IPV6 for p in whole], np.int64),
    )
    out = Reassembled()
    for code, rows in layers.peel(built, cursor).ended.items():
        if code == TCP:
            _map_tcp(built, rows.take(rows.at + tcp.NEEDED_BYTES <= rows.end), whole, at, octets, out)
        elif code == Inner.DATAGRAM:
            _map_udp(built, rows, whole, at, out)
        else:
            out.ended[code] += sum(len(whole[row].pieces) for row in rows.row.tolist())
    return out


def _header_bytes(packet: Pending) -> int:
    return 20 if packet.version == 4 else 40


def _packet(octets: Octets, packet: Pending) -> tuple[bytes, bytes, int]:
    """A plain header, the payload (zeros where it was not captured), and how much of it is there from its beginning."""
    total = packet.total or 0
    payload = bytearray(total)
    contiguous = 0
    for piece in sorted(packet.pieces, key=lambda p: p.place, reverse=True):
        room = max(0, min(piece.captured, total - piece.place))
        payload[piece.place : piece.place + room] = octets.text(piece.at, piece.at + room)
    for piece in sorted(packet.pieces, key=lambda p: p.place):
        if piece.place > contiguous:
            break
        contiguous = max(contiguous, piece.place + piece.captured)
    first = min(packet.pieces, key=lambda p: p.place)
    if packet.version == 4:
        old = octets.text(first.network, first.network + 20)
        length = 20 + total
        header = b"\x45" + old[1:2] + (length if length < 65536 else 0).to_bytes(2) + old[4:6] + b"\0\0" + old[8:20]
    else:
        old = octets.text(first.network, first.network + 40)
        header = old[:4] + (total if total < 65536 else 0).to_bytes(2) + bytes((packet.protocol,)) + old[7:40]
    return header, bytes(payload), min(contiguous, total)


def _locate(packet: Pending, place: int, length: int) -> int | None:
    """Where in the file's buffer ``length`` octets of the payload from ``place`` on are, if in one piece."""
    for piece in packet.pieces:
        if piece.place <= place and place + length <= piece.place + piece.captured:
            return piece.at + place - piece.place
    return None


def _map_tcp(
    built: Octets, rows: Cursor, whole: list[Pending], at: list[int], octets: Octets, out: Reassembled
) -> None:
    columns = tcp.columns(built, rows)
    for index, row in enumerate(rows.row.tolist()):
        packet = whole[row]
        base = at[row] + _header_bytes(packet)
        values = {name: int(column[index]) for name, column in columns.items()}
        inner = values["network_offset"] - base
        tunnelled = None
        if inner >= 0:
            size = 40 if built.buffer[values["network_offset"]] >> 4 == 6 else 20
            tunnelled = _locate(packet, inner, size)
            if tunnelled is None:
                out.ended[int(Inner.BAD_HEADER)] += len(packet.pieces)
                continue
        out.packets += _tcp_rows(packet, values, int(rows.at[index]) - base, values["payload_offset"] - base, tunnelled)


def _tcp_rows(
    packet: Pending, values: dict[str, int], header_place: int, payload_place: int, tunnelled: int | None
) -> list[dict[str, Any]]:
    """One row per fragment that carries payload or the header. SYN stays with the header, FIN and PSH go with the last octet. A segment
    without payload has nothing but its arrival: that of the fragment that makes it whole."""
    end = payload_place + values["payload_bytes"]
    moved = (FIN | PSH) if end > payload_place else 0
    rows: list[dict[str, Any]] = []
    completes = max(packet.pieces, key=lambda p: p.number)
    with_header = next(p for p in sorted(packet.pieces, key=lambda p: p.place) if p.place + p.length > header_place)
    reached = payload_place
    for piece in sorted(packet.pieces, key=lambda p: p.place):
        first = max(piece.place, reached)
        last = min(piece.place + piece.length, end)
        if piece is not with_header and first >= last:
            continue
        length = max(0, last - first)
        has_header = piece is with_header
        header_whole = not has_header or payload_place <= piece.place + piece.captured
        arrives = piece if end > payload_place else completes
        flags = values["flags"] & ~moved if has_header else values["flags"] & ACK
        if length and last == end:
            flags |= values["flags"] & moved
        offset = piece.at + (first if length else min(first, piece.place + piece.length)) - piece.place
        header_bytes = values["header_bytes"] if has_header else 20
        if not header_whole:
            header_bytes = max(0, piece.place + piece.captured - header_place) & -4
            offset = piece.at + header_place - piece.place + header_bytes
        rows.append(
            {
                **values,
                "number": arrives.number,
                "captured_at": arrives.captured_at,
                "interface": arrives.interface,
                "network_offset": piece.network if tunnelled is None else tunnelled,
                "seq": (values["seq"] + _advance(values["flags"], first - payload_place, has_header)) % 2**32,
                "flags": flags,
                "payload_offset": offset,
                "payload_bytes": length,
                "captured_payload_bytes": max(0, min(length, piece.at + piece.captured - offset))
                if header_whole
                else 0,
                "header_bytes": header_bytes,
            }
        )
        reached = max(reached, last)
    return rows


def _advance(flags: int, octets_before: int, has_header: bool) -> int:
    """A SYN takes a sequence number of its own, which the rows without it must count."""
    if has_header:
        return 0
    return octets_before + (1 if flags & SYN else 0)


def _map_udp(built: Octets, rows: Cursor, whole: list[Pending], at: list[int], out: Reassembled) -> None:
    columns = udp.columns(built, rows)
    for index, row in enumerate(rows.row.tolist()):
        packet = whole[row]
        base = at[row] + _header_bytes(packet)
        values = {name: int(column[index]) for name, column in columns.items()}
        place = values["payload_offset"] - base
        last = max(packet.pieces, key=lambda p: p.number)
        with_payload = next((p for p in packet.pieces if p.place <= place < p.place + p.length), last)
        offset = with_payload.at + max(0, place - with_payload.place)
        room = max(0, with_payload.at + with_payload.captured - offset)
        out.contents[last.number] = built.text(
            values["payload_offset"], values["payload_offset"] + values["captured_payload_bytes"]
        )
        out.datagrams.append(
            {
                **values,
                "number": last.number,
                "captured_at": last.captured_at,
                "interface": last.interface,
                "network_offset": with_payload.network,
                "payload_offset": offset,
                "captured_payload_bytes": min(room, values["payload_bytes"]),
            }
        )
