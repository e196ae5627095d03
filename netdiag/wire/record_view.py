"""One TLS record as the TLS decoder wants it: its place and times, and its octets only when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol


class RecordRow(NamedTuple):
    """The same before it is a view: numbers, NONE where one is not known."""

    content_type: int
    version: int
    length: int
    stream_offset: int
    first_seen_at: int
    last_seen_at: int
    deliverable_at: int
    first_packet: int
    last_packet: int
    missing_bytes: int
    content_offset: int


class RecordRows(Protocol):
    """The records of one direction as rows, for whoever reads one after the other and keeps none."""

    def rows(self, start: int) -> Iterator[tuple[int, ...]]:
        """From a record on; in the order of ``RecordRow``."""

    def content(self, row: tuple[int, ...]) -> bytes:
        """As ``TlsRecordView.fragment``."""

    def lacking(self, content_type: int) -> tuple[int, int]:
        """Records of this type, and those of them that lack octets."""


class TlsRecordView:
    """One TLS record of one direction (RFC 8446 section 5.1). Times are ns since the epoch.

    Made lazily, one at a time, from a row of ``TlsRecords``; the record's octets stay in the capture's buffer until ``fragment`` is called.
    """

    __slots__ = (
        "_read",
        "content_type",
        "deliverable_at",
        "first_packet",
        "first_seen_at",
        "last_packet",
        "last_seen_at",
        "length",
        "missing_bytes",
        "stream_offset",
        "version",
    )

    def __init__(
        self,
        *,
        content_type: int,
        version: int,
        length: int,
        stream_offset: int,
        first_seen_at: int,
        last_seen_at: int | None,
        deliverable_at: int | None,
        first_packet: int | None,
        last_packet: int | None,
        missing_bytes: int,
        read: Callable[[], bytes],
    ) -> None:
        """``read`` returns the record's content without the 5-octet header, as far as it was captured."""
        self.content_type = content_type
        """RFC 8446: 20 change_cipher_spec, 21 alert, 22 handshake, 23 application_data, 24 heartbeat; 128 is an SSL 2.0-compatible
        ClientHello (RFC 5246 appendix E.2), whose header has two octets."""
        self.version = version
        """``legacy_record_version`` as on the wire."""
        self.length = length
        """The length field: octets after the header."""
        self.stream_offset = stream_offset
        """Of the header's first octet in the direction's TCP stream."""
        self.first_seen_at = first_seen_at
        """First transmission of the record's first octet."""
        self.last_seen_at = last_seen_at
        """First transmission of the record's last octet; None if that was never captured."""
        self.deliverable_at = deliverable_at
        """When the whole record and all before it had been seen; None if never."""
        self.first_packet = first_packet
        self.last_packet = last_packet
        """Packet that made the record complete."""
        self.missing_bytes = missing_bytes
        """Octets of the content that are not in the buffer (snap length, capture gap)."""
        self._read = read

    def fragment(self) -> bytes:
        """The record's content without its header; shorter than ``length`` where octets are missing."""
        return self._read()
