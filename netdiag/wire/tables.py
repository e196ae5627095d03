"""The tables of the column layer. Row order is stated with each; every array of a table has the same length."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from netdiag.plain import plain

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
UInt64 = NDArray[np.uint64]
UInt32 = NDArray[np.uint32]
UInt16 = NDArray[np.uint16]
UInt8 = NDArray[np.uint8]
Bool = NDArray[np.bool_]
Buffer = Any
"""Anything with the buffer protocol over the octets that offsets point into: mmap, memoryview, bytes, bytearray, numpy uint8."""

NONE = -1
"""In an integer column: not known or does not apply (packets, times, ids). Becomes ``None`` in records."""


class Table:
    """Row selection and concatenation for dataclasses whose fields are arrays of one length."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]
    """By name; ``dataclasses.fields`` would make a list of them each time."""

    def __len__(self) -> int:
        return len(getattr(self, next(iter(self.__dataclass_fields__))))

    def take(self, rows: Any) -> Self:
        """The chosen rows: an index array, a mask or a slice (a slice copies nothing)."""
        return type(self)(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})

    @classmethod
    def concat(cls, parts: list[Self]) -> Self:
        """All rows of the parts, in order. ``parts`` must not be empty."""
        return cls(**{name: np.concatenate([getattr(p, name) for p in parts]) for name in cls.__dataclass_fields__})


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """One capture interface of a file (pcapng IDB; a pcap file has exactly one)."""

    link_type: int
    """LINKTYPE_ value."""
    snap_bytes: int
    """0 for unlimited."""
    ticks_per_second: int
    """Resolution of its time stamps."""
    name: str | None = None
    offset_s: int = 0
    fcs_bytes: int = 0
    """Octets of frame check sequence at the end of each frame."""


@plain(frozen=True, slots=True, kw_only=True)
class RawPackets(Table):
    """One row per captured packet of one window, in file order, before any decoding. Offsets point into ``Window.buffer``."""

    number: Int64
    """1-based position in the file, as Wireshark counts."""
    captured_at: Int64
    """ns since the epoch; as stored, never reordered; NONE where the block has no time stamp (Simple Packet Block)."""
    data_offset: Int64
    captured_bytes: Int64
    original_bytes: Int64
    interface: Int32
    """Index into ``Window.interfaces``."""


@plain(frozen=True, slots=True, kw_only=True)
class Window:
    """Some of a capture file's packets with the buffer that holds them. ``interfaces`` is the list known so far, over all sections."""

    buffer: Buffer
    packets: RawPackets
    interfaces: tuple[Interface, ...]
    end_offset: int
    """Octets of the file read so far, for progress."""


@plain(frozen=True, slots=True, kw_only=True)
class Packets(Table):
    """One row per captured TCP packet. In file order when decoded; after ``connections.track`` sorted so that each direction of each
    connection is one contiguous slice, in file order inside.

    ``low`` and ``high`` are the connection's two endpoints as 64-bit keys, the smaller first: IPv4 address << 16 | port; for IPv6 a hash
    with the top bit set (verified against the octets after grouping). Tunnels and VLANs do not matter, as for Wireshark's streams.
    A segment that came in IP fragments is one row per fragment, with ``seq`` advanced by its place.
    """

    number: Int64
    captured_at: Int64
    low: UInt64
    high: UInt64
    direction: UInt8
    """0: sent by the ``low`` endpoint, 1: by the ``high`` one."""
    seq: UInt32
    ack: UInt32
    flags: UInt16
    """Low octet as in the header (FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128)."""
    window: UInt16
    """As in the header, not scaled."""
    payload_offset: Int64
    """Where the TCP payload begins in the buffer."""
    payload_bytes: Int32
    """Length of the payload by the IP header (may be more than was captured)."""
    captured_payload_bytes: Int32
    """Octets of the payload that are in the buffer."""
    network_offset: Int64
    """Where the (innermost) IP header begins in the buffer."""
    header_bytes: UInt8
    """Length of the TCP header (data offset × 4): options lie at ``payload_offset - header_bytes + 20``. Less where the snap length or
    the end of an IP fragment cut the header; 20 in later fragments of a packet."""
    ip_id: Int32
    """IPv4 identification; NONE for IPv6."""
    hop_limit: UInt8
    """TTL or hop limit."""
    interface: Int32


@plain(frozen=True, slots=True, kw_only=True)
class Datagrams(Table):
    """One row per captured UDP datagram of interest (DNS, mDNS excluded; QUIC on 443 and others), in file order."""

    number: Int64
    captured_at: Int64
    network_offset: Int64
    payload_offset: Int64
    payload_bytes: Int32
    captured_payload_bytes: Int32
    source_port: UInt16
    destination_port: UInt16
    interface: Int32


class SegmentKind(IntEnum):
    """What a segment's octets are to the stream."""

    NEW = 0
    RETRANSMISSION = 1
    """Octets (or SYN, FIN) that were seen before, or that fill a hole after a retransmission-shaped delay."""
    SPURIOUS = 2
    """Retransmission of octets that had been acknowledged already."""
    OUT_OF_ORDER = 3
    """Fills a hole sooner than a retransmission could."""
    KEEP_ALIVE = 4
    """RFC 9293 section 3.8.4: one octet (or none) before the edge."""
    CAPTURE_DUPLICATE = 5
    """The same packet captured twice."""
    FAST_RETRANSMISSION = 6
    TAIL_LOSS_PROBE = 7
    """RFC 8985 section 7."""


@plain(frozen=True, kw_only=True)
class Segments(Table):
    """One row per TCP segment with payload, sorted by (connection, direction, file order).

    Also what the probe's recording backend writes and reads: then ``packet`` is NONE, and ``payload_offset`` points into the recorded octets.
    """

    connection: Int32
    direction: UInt8
    """0: sent by the client, 1: by the server (not low/high any more)."""
    packet: Int64
    """Frame number; NONE without packets."""
    stream_offset: Int64
    """64-bit offset of the first payload octet from the octet after the SYN (or from the first octet seen); the 32-bit wrap is removed."""
    length: Int64
    """Payload octets by the IP header."""
    captured_bytes: Int64
    payload_offset: Int64
    seen_at: Int64
    deliverable_at: Int64
    """When this segment's first new octet and all before it had been seen; equals seen_at without holes; NONE if a hole was never filled."""
    kind: UInt8
    new_offset: Int64
    """First octet of this segment that no earlier segment had; equals ``stream_offset`` for new ones, the end when it has none."""


@plain(frozen=True, kw_only=True)
class TlsRecords(Table):
    """One row per TLS record, sorted by (connection, direction, stream_offset)."""

    connection: Int32
    direction: UInt8
    stream_offset: Int64
    """Of the 5-octet header."""
    content_type: UInt8
    version: UInt16
    length: Int64
    """The record's length field (without the 5-octet header)."""
    first_packet: Int64
    last_packet: Int64
    """Packet that made the record deliverable."""
    first_seen_at: Int64
    """First transmission of the record's first octet."""
    last_seen_at: Int64
    """First transmission of the record's last octet; NONE if never captured."""
    deliverable_at: Int64
    """When the whole record and all before it had been seen; NONE if never."""
    missing_bytes: Int64
    """Octets of the record that are not in the buffer (snap length, capture gap)."""
