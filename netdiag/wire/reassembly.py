"""Rows of packets that became whole: built once more in a scratch buffer, taken through the layers, and mapped back to their fragments."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from netdiag.plain import plain
from netdiag.wire import layers, tcp, udp
from netdiag.wire.codes import IPV4, IPV6, TCP, Inner
from netdiag.wire.cursor import Cursor, start
from netdiag.wire.fragment import Pending, Piece
from netdiag.wire.octets import Octets
from netdiag.wire.tcp_flags import ACK, FIN, PSH, SYN

_PLAIN_HEADER_BYTES = 20


@plain(slots=True)
class Reassembled:
    """Rows from fragments, as (column name -> value)."""

    packets: list[dict[str, Any]] = field(default_factory=list)
    datagrams: list[dict[str, Any]] = field(default_factory=list)
    contents: dict[int, bytes] = field(default_factory=dict)
    """Payload of each datagram, by its frame number, since it is not in one place of the buffer."""
    ended: Counter[int] = field(default_factory=Counter)
    """Fragments of packets that are neither, by code."""


def rebuild(octets: Octets, whole: list[Pending]) -> Reassembled:
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
            _map_tcp(built, rows.take(rows.at + tcp.NEEDED_BYTES <= rows.end), whole, at, out)
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


def _map_tcp(built: Octets, rows: Cursor, whole: list[Pending], at: list[int], out: Reassembled) -> None:
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
        payload = values["payload_offset"] - base
        places = _Places(int(rows.at[index]) - base, payload, payload + values["payload_bytes"])
        out.packets += _tcp_rows(packet, values, places, tunnelled)


class _Places(NamedTuple):
    """Of a TCP segment in its packet's payload."""

    header: int
    payload: int
    end: int


def _tcp_rows(packet: Pending, values: dict[str, int], places: _Places, tunnelled: int | None) -> list[dict[str, Any]]:
    """One row per fragment that carries payload or the header. A segment without payload has nothing but its arrival: that of the fragment
    that makes it whole."""
    rows: list[dict[str, Any]] = []
    ordered = sorted(packet.pieces, key=lambda p: p.place)
    with_header = next(p for p in ordered if p.place + p.length > places.header)
    completes = max(packet.pieces, key=lambda p: p.number)
    reached = places.payload
    for piece in ordered:
        has_header = piece is with_header
        first, last = max(piece.place, reached), min(piece.place + piece.length, places.end)
        if first >= last and not has_header:
            continue
        row = {
            **values,
            **_arrival(piece if places.end > places.payload else completes),
            "network_offset": piece.network if tunnelled is None else tunnelled,
            "seq": values["seq"] if has_header else _later_seq(values, first - places.payload),
            "flags": _flags(values["flags"], places, has_header=has_header, ends=first < last == places.end),
            "header_bytes": values["header_bytes"] if has_header else _PLAIN_HEADER_BYTES,
            **_payload(piece, first, max(0, last - first)),
        }
        if has_header and places.payload > piece.place + piece.captured:
            row |= _cut_header(piece, places.header)
        rows.append(row)
        reached = max(reached, last)
    return rows


def _arrival(piece: Piece) -> dict[str, int]:
    return {"number": piece.number, "captured_at": piece.captured_at, "interface": piece.interface}


def _payload(piece: Piece, first: int, length: int) -> dict[str, int]:
    offset = piece.at + (first if length else min(first, piece.place + piece.length)) - piece.place
    captured = max(0, min(length, piece.at + piece.captured - offset))
    return {"payload_offset": offset, "payload_bytes": length, "captured_payload_bytes": captured}


def _cut_header(piece: Piece, header_place: int) -> dict[str, int]:
    """Of a fragment whose capture ends inside the TCP header."""
    header_bytes = max(0, piece.place + piece.captured - header_place) & -4
    offset = piece.at + header_place - piece.place + header_bytes
    return {"header_bytes": header_bytes, "payload_offset": offset, "captured_payload_bytes": 0}


def _flags(flags: int, places: _Places, *, has_header: bool, ends: bool) -> int:
    """SYN stays with the header; FIN and PSH go with the last octet, where there is one."""
    moved = (FIN | PSH) if places.end > places.payload else 0
    return (flags & ~moved if has_header else flags & ACK) | (flags & moved if ends else 0)


def _later_seq(values: dict[str, int], octets_before: int) -> int:
    """Of a row without the header. A SYN takes a sequence number of its own, which such rows must count."""
    syn = 1 if values["flags"] & SYN else 0
    return (values["seq"] + octets_before + syn) % 2**32


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
                **_arrival(last),
                "network_offset": with_payload.network,
                "payload_offset": offset,
                "captured_payload_bytes": min(room, values["payload_bytes"]),
            }
        )
