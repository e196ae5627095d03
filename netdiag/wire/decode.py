"""Packets of a window to the tables ``Packets`` and ``Datagrams``: the common case by ``fast``, everything else layer by layer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netdiag.records.anomaly import Anomaly
from netdiag.wire import icmp, layers, tcp, udp
from netdiag.wire.codes import ICMP, ICMPV6, LINK_TYPE, TCP, Inner, name_of
from netdiag.wire.cursor import Cursor, start
from netdiag.wire.fast import CHUNK_ROWS, SHAPES, FastPath
from netdiag.wire.fragments import Fragments
from netdiag.wire.icmp import IcmpError
from netdiag.wire.octets import Octets
from netdiag.wire.reassembly import Reassembled
from netdiag.wire.tables import NONE, Bool, Buffer, Datagrams, Int64, Interface, Packets, RawPackets, Window

COLUMN_TYPES: dict[str, type[np.generic]] = {
    "low": np.uint64,
    "high": np.uint64,
    "direction": np.uint8,
    "seq": np.uint32,
    "ack": np.uint32,
    "flags": np.uint16,
    "window": np.uint16,
    "payload_offset": np.int64,
    "payload_bytes": np.int32,
    "captured_payload_bytes": np.int32,
    "network_offset": np.int64,
    "header_bytes": np.uint8,
    "ip_id": np.int32,
    "hop_limit": np.uint8,
}
RAW_TYPES: dict[str, type[np.generic]] = {"number": np.int64, "captured_at": np.int64, "interface": np.int32}
DATAGRAM_TYPES: dict[str, type[np.generic]] = {
    "network_offset": np.int64,
    "payload_offset": np.int64,
    "payload_bytes": np.int32,
    "captured_payload_bytes": np.int32,
    "source_port": np.uint16,
    "destination_port": np.uint16,
}


@dataclass(slots=True, kw_only=True)
class Decoded:
    """What the packets of one window are."""

    packets: Packets
    datagrams: Datagrams
    icmp: list[IcmpError] = field(default_factory=list)
    not_decoded: Counter[str] = field(default_factory=Counter)
    """Packets that carry neither TCP, UDP nor an ICMP error about them, by what they are."""
    anomalies: list[Anomaly] = field(default_factory=list)
    reassembled: dict[int, bytes] = field(default_factory=dict)
    """Payload of UDP datagrams that came in IP fragments, by frame number: their row in ``datagrams`` holds only the first part."""


def decode(window: Window) -> Decoded:
    """One window by itself: IP fragments are put together only inside it (``Decoder`` does it across windows)."""
    decoder = Decoder()
    decoded = decoder.complete(dissect(window))
    decoded.not_decoded += decoder.finish()
    return decoded


def dissect(window: Window) -> Dissected:
    """What each packet of the window is by itself; several windows may be looked at at once. ``Decoder.complete`` makes tables of it."""
    octets = Octets(window.buffer)
    raw = window.packets
    columns = {name: np.empty(len(raw), kind) for name, kind in COLUMN_TYPES.items()}
    code = _link_codes(raw, window.interfaces)
    common = _fill_common(octets, raw, code, columns)
    out = Dissected(octets, raw, columns, common)
    rest = np.flatnonzero(~common)
    for first in range(0, len(rest), CHUNK_ROWS):
        rows = rest[first : first + CHUNK_ROWS]
        out.take(layers.peel(octets, _start(raw, rows, code[rows], window.interfaces)))
    return out


class Decoder:
    """Completes the windows of one file in order, carrying IP fragments from one to the next."""

    def __init__(self) -> None:
        self._fragments = Fragments()

    def decode(self, window: Window) -> Decoded:
        """One window after the other."""
        return self.complete(dissect(window))

    def complete(self, dissected: Dissected) -> Decoded:
        """All packets of the window. Rows are in file order (those of fragments that waited from an earlier window come first)."""
        four, six = dissected.joined(Inner.FRAGMENT_4), dissected.joined(Inner.FRAGMENT_6)
        whole = self._fragments.add(dissected.octets, dissected.raw, four, six)
        return dissected.finish(whole, self._fragments.take_given_up())

    def finish(self) -> Counter[str]:
        """After the last window: fragments that never became whole packets."""
        return self._fragments.take_given_up(all_of_them=True)

    def beginnings(self, buffer: Buffer) -> Datagrams:
        """After ``finish``: DNS messages whose first IP fragment alone was captured, as far as it goes, in file order."""
        rows = self._fragments.beginnings(Octets(buffer))
        names = [row for row in rows if udp.DNS_PORT in (row["source_port"], row["destination_port"])]
        table = Datagrams(**_arrays(names, RAW_TYPES | DATAGRAM_TYPES))
        return table.take(np.argsort(table.number, kind="stable"))


def _link_codes(raw: RawPackets, interfaces: tuple[Interface, ...]) -> Int64:
    """The first layer of each packet. The last entry of the lookup is what index -1 finds."""
    lookup = np.array([LINK_TYPE | i.link_type for i in interfaces] + [int(Inner.UNKNOWN_INTERFACE)], np.int64)
    code = lookup[raw.interface]
    nothing = (raw.interface == NONE) & (raw.original_bytes == 0) & (raw.captured_bytes == 0)
    if nothing.any():
        code[nothing] = int(Inner.NOT_A_PACKET)
    return code


def _fill_common(octets: Octets, raw: RawPackets, code: Int64, columns: dict[str, NDArray[Any]]) -> Bool:
    common = np.zeros(len(raw), np.bool_)
    if not len(raw):
        return common
    paths: dict[int, FastPath] = {}
    for first in range(0, len(raw), CHUNK_ROWS):
        rows = slice(first, first + CHUNK_ROWS)
        link_type = int(code[first]) & 0xFFFF
        # A chunk of several link types goes through the layers; it is rare, and one stray packet costs one chunk.
        if int(code[first]) == LINK_TYPE | link_type and link_type in SHAPES and (code[rows] == code[first]).all():
            path = paths.get(link_type)
            if path is None:
                path = paths[link_type] = FastPath(octets, link_type)
            common[rows] = path.fill(raw.data_offset[rows], raw.captured_bytes[rows], columns, rows)
    return common


def _start(raw: RawPackets, rows: Int64, code: Int64, interfaces: tuple[Interface, ...]) -> Cursor:
    captured, original = raw.captured_bytes[rows], raw.original_bytes[rows]
    check_sequence = np.array([i.fcs_bytes for i in interfaces] + [0], np.int64)
    if check_sequence.any():
        original = np.maximum(original - check_sequence[raw.interface[rows]], 0)
        captured = np.minimum(captured, original)
    return start(rows, raw.data_offset[rows], captured, original, code)


class Dissected:
    """What came out of the layers of one window's packets, and the tables of it and of the common rows."""

    def __init__(self, octets: Octets, raw: RawPackets, columns: dict[str, NDArray[Any]], is_tcp: Bool) -> None:
        self.octets = octets
        self.raw = raw
        self._columns = columns
        self._is_tcp = is_tcp
        self._parts: dict[int, list[Cursor]] = {}
        self._not_decoded: Counter[str] = Counter()
        self._icmp: list[IcmpError] = []
        self._anomalies: list[Anomaly] = []

    def take(self, peeled: layers.Peeled) -> None:
        """One chunk of odd rows."""
        for name, count in peeled.cut.items():
            self._not_decoded[f"cut inside {name}"] += count
        for code, rows in peeled.ended.items():
            if code == TCP:
                self._tcp(rows)
            elif code in (ICMP, ICMPV6):
                self._messages(rows, 4 if code == ICMP else 6)
            elif code in (Inner.DATAGRAM, Inner.FRAGMENT_4, Inner.FRAGMENT_6):
                self._parts.setdefault(code, []).append(rows)
            else:
                self._not_decoded[name_of(code)] += len(rows)
                if code == Inner.BAD_HEADER:
                    self._note("ip", "with an impossible header", rows)

    def joined(self, code: int) -> Cursor | None:
        """All rows that ended at ``code``."""
        parts = self._parts.get(code)
        return Cursor.concat(parts) if parts else None

    def finish(self, whole: Reassembled, given_up: Counter[str]) -> Decoded:
        """The tables."""
        for code, count in whole.ended.items():
            self._not_decoded[name_of(code)] += count
        return Decoded(
            packets=self._packets(whole),
            datagrams=self._datagrams(whole),
            icmp=sorted(self._icmp, key=lambda error: error.packet),
            not_decoded=self._not_decoded + given_up,
            anomalies=self._anomalies,
            reassembled=whole.contents,
        )

    def _note(self, protocol: str, what: str, rows: Cursor) -> None:
        """One anomaly for all of a chunk's packets of a kind, at the first of them."""
        first = int(self.raw.number[rows.row.min()])
        count = len(rows)
        reason = f"a packet {what}" if count == 1 else f"{count} packets {what}, the first of them packet {first}"
        self._anomalies.append(Anomaly(protocol=protocol, reason=reason, packet=first))

    def _tcp(self, rows: Cursor) -> None:
        enough = rows.at + tcp.NEEDED_BYTES <= rows.end
        if not enough.all():
            self._not_decoded["cut inside tcp"] += int((~enough).sum())
            rows = rows.take(enough)
        possible = tcp.has_possible_length(self.octets, rows)
        if not possible.all():
            self._note("tcp", "with an impossible TCP header length", rows.take(~possible))
        for name, values in tcp.columns(self.octets, rows).items():
            self._columns[name][rows.row] = values
        self._is_tcp[rows.row] = True

    def _messages(self, rows: Cursor, version: int) -> None:
        raw = self.raw
        found, is_error = icmp.errors(self.octets, rows, raw.number, raw.captured_at, version=version)
        self._icmp += found
        others = int((~is_error).sum())
        if others:
            self._not_decoded["icmp" if version == 4 else "icmpv6"] += others

    def _packets(self, whole: Reassembled) -> Packets:
        raw, columns = self.raw, self._columns
        if self._is_tcp.all():
            table = Packets(number=raw.number, captured_at=raw.captured_at, interface=raw.interface, **columns)
        else:
            keep = np.flatnonzero(self._is_tcp)
            table = Packets(
                number=raw.number[keep],
                captured_at=raw.captured_at[keep],
                interface=raw.interface[keep],
                **{name: column[keep] for name, column in columns.items()},
            )
        if not whole.packets:
            return table
        table = Packets.concat([table, Packets(**_arrays(whole.packets, RAW_TYPES | COLUMN_TYPES))])
        return table.take(np.argsort(table.number, kind="stable"))

    def _datagrams(self, whole: Reassembled) -> Datagrams:
        raw = self.raw
        rows = self.joined(Inner.DATAGRAM)
        if rows is None:
            table = Datagrams(**_arrays([], RAW_TYPES | DATAGRAM_TYPES))
        else:
            rows = rows.take(np.argsort(rows.row, kind="stable"))
            columns = udp.columns(self.octets, rows)
            table = Datagrams(
                number=raw.number[rows.row],
                captured_at=raw.captured_at[rows.row],
                interface=raw.interface[rows.row],
                **{name: columns[name].astype(kind) for name, kind in DATAGRAM_TYPES.items()},
            )
        if whole.datagrams:
            table = Datagrams.concat([table, Datagrams(**_arrays(whole.datagrams, RAW_TYPES | DATAGRAM_TYPES))])
            table = table.take(np.argsort(table.number, kind="stable"))
        multicast = (table.source_port == udp.MDNS_PORT) | (table.destination_port == udp.MDNS_PORT)
        # A client may ask an ordinary resolver from the multicast port.
        multicast &= (table.source_port != udp.DNS_PORT) & (table.destination_port != udp.DNS_PORT)
        if multicast.any():
            self._not_decoded["mdns"] += int(multicast.sum())
            table = table.take(~multicast)
        return table


def _arrays(rows: list[dict[str, Any]], types: dict[str, type[np.generic]]) -> dict[str, NDArray[Any]]:
    return {name: np.array([row[name] for row in rows], kind) for name, kind in types.items()}
