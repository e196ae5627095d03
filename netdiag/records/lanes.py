"""The rows behind one exchange, for a picture that shows why a phase is as long as it is: packets, TLS records, messages, holes.

Filled on request only (``api.lanes``): these exist once per packet, so an ``Analysis`` does not carry them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from netdiag.records.connection import Connection
from netdiag.records.exchange import Exchange


class LaneKind(StrEnum):
    """What a packet is to its stream."""

    DATA = "data"
    ACK = "ack"
    """No payload, no flag but ACK."""
    SYN = "syn"
    FIN = "fin"
    RST = "rst"
    RETRANSMISSION = "retransmission"
    SPURIOUS = "spurious"
    OUT_OF_ORDER = "out-of-order"
    KEEP_ALIVE = "keep-alive"


@dataclass(frozen=True, slots=True, kw_only=True)
class LanePacket:
    """One packet of the exchange's connection while the exchange lasted."""

    number: int
    at: int
    side: str
    """``client`` or ``server``: who sent it."""
    kind: LaneKind
    payload_bytes: int
    """By the IP header."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneSpan:
    """Something that took its octets from one or more packets: a TLS record, an HTTP message, an HTTP/2 frame."""

    side: str
    label: str
    """``ClientHello``, ``Finished``, ``application data`` …; ``request head``, ``response body``, ``HEADERS``, ``DATA`` …"""
    seen_at: int
    """First transmission of its first octet."""
    deliverable_at: int | None
    """When it was whole; None when it never was."""
    size_bytes: int | None
    """None when it is not known."""
    first_packet: int | None = None
    last_packet: int | None = None
    of_this_exchange: bool = True
    """False for another stream's frames and for records that carry none of this exchange's octets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneHole:
    """Octets that were missing while later ones were there."""

    side: str
    """Whose octets."""
    from_at: int
    """When the first octet after the hole was seen."""
    until_at: int | None
    """When the hole was filled; None when it never was."""
    size_bytes: int | None = None
    """None when it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeLanes:
    """Everything one picture of one exchange needs; all lists are in order of time. SSE events are in ``exchange.stream.timeline``."""

    exchange: Exchange
    connection: Connection | None
    packets: tuple[LanePacket, ...] = ()
    records: tuple[LaneSpan, ...] = ()
    messages: tuple[LaneSpan, ...] = ()
    holes: tuple[LaneHole, ...] = ()
    left_out: int = 0
    """Packets that are not listed because there were too many."""
