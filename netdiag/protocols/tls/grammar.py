"""What record lengths tell where there are no keys: the end of a TLS 1.3 handshake, tickets, small HTTP/2 frames.

Everything here is a guess by size and order, to be labelled ``grammar``. A peer that pads its records, or puts several messages into one,
is not recognised; then the answer is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from netdiag.protocols.tls.names import ContentType, is_tls13
from netdiag.protocols.tls.suites import Suite
from netdiag.wire.record_view import TlsRecordView

END_OF_EARLY_DATA = 4
KEY_UPDATE = 5
ALERT = 2
SETTINGS_ACK = 9
PING = 17
WINDOW_UPDATE = 13
"""Also RST_STREAM. Contents in octets, before protection."""


class SmallRecord(Enum):
    """What a protected record of a telling length most likely carries."""

    ALERT = ALERT
    END_OF_EARLY_DATA = END_OF_EARLY_DATA
    KEY_UPDATE = KEY_UPDATE
    SETTINGS_ACK = SETTINGS_ACK
    WINDOW_UPDATE = WINDOW_UPDATE
    PING = PING


def expansion(suite: Suite, version: int) -> int | None:
    """Octets that protection adds to a record's content: the length field minus the content; None where it varies (CBC) or is unknown."""
    bulk = suite.bulk
    if bulk is None:
        # All AEAD suites netdiag cannot decrypt (ARIA, Camellia, SM4 in GCM) have tags of 16 octets.
        if "GCM" not in suite.cipher:
            return None
        return 17 if is_tls13(version) else 24
    if not bulk.aead:
        return None
    if is_tls13(version):
        return bulk.tag_bytes + 1
    return bulk.tag_bytes + (0 if bulk.mode == "chacha" else 8)


def content_bytes(length: int, suite: Suite, version: int) -> int | None:
    """Octets of content in a record whose length field is ``length``, if it is not padded; None where that cannot be said."""
    overhead = expansion(suite, version)
    return None if overhead is None or length < overhead else length - overhead


def small_record(length: int, suite: Suite, version: int) -> SmallRecord | None:
    """The message that a record of this length carries if it is one of the well-known small ones; None for all other lengths."""
    size = content_bytes(length, suite, version)
    try:
        kind = SmallRecord(size)
    except ValueError:
        return None
    return kind if is_tls13(version) or kind not in _ONLY_TLS13 else None


_ONLY_TLS13 = (SmallRecord.END_OF_EARLY_DATA, SmallRecord.KEY_UPDATE)


def finished_length(suite: Suite, version: int) -> int | None:
    """Length field of a TLS 1.3 record that holds a Finished alone: 53 with SHA-256, 69 with SHA-384 (8 less with CCM_8)."""
    overhead = expansion(suite, version)
    if overhead is None or not is_tls13(version):
        return None
    return 4 + (48 if suite.prf_hash == "sha384" else 32) + overhead


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedBySize:
    """Where a TLS 1.3 handshake ends by the sizes of its records. Indices point into the sequences given."""

    client_finished: int
    """Client record that is the Finished."""
    server_flight_end: int | None
    """Last server record first seen before it: the one with the server's Finished; None when no server record was captured."""
    early_data_accepted: bool
    """An EndOfEarlyData record comes just before the Finished."""
    tickets: tuple[int, ...] = ()
    """Server records that look like NewSessionTickets."""

    @property
    def first_client_application(self) -> int:
        """Client record with the first octets after the handshake, if there is one."""
        return self.client_finished + 1


_MOST_CLIENT_RECORDS = 1_000
"""Records searched for the Finished (0-RTT data come before it)."""
_MOST_TICKETS = 4
_TICKET_CONTENT = range(100, 1_200)
_TICKET_WINDOW_NS = 250_000_000


def finished_by_size(
    client: Sequence[TlsRecordView],
    server: Sequence[TlsRecordView],
    *,
    suite: Suite,
    version: int,
    offers_settings: bool = False,
) -> FinishedBySize | None:
    """Finds the client's Finished of a TLS 1.3 handshake without keys; None when no record has its size in its place.

    It is the client's first protected record of that size; only 0-RTT data with EndOfEarlyData, or a client certificate with its proof,
    may come before it, and then something of another size does. ``offers_settings``: the ClientHello has the application_settings
    extension, so the Finished may share its record with an EncryptedExtensions of the client.
    """
    length = finished_length(suite, version)
    if length is None:
        return None
    found = _first_protected(client, _shared_lengths(length, offers_settings=offers_settings))
    if found is None:
        found = _first_of_length(client, length)
    if found is None:
        return None
    end = _server_flight_end(server, client[found].first_seen_at)
    before = client[found - 1] if found else None
    accepted = (
        before is not None
        and before.content_type == ContentType.APPLICATION_DATA
        and small_record(before.length, suite, version) is SmallRecord.END_OF_EARLY_DATA
    )
    tickets = _tickets(server, 0 if end is None else end + 1, suite=suite, version=version)
    return FinishedBySize(client_finished=found, server_flight_end=end, early_data_accepted=accepted, tickets=tickets)


_EMPTY_CERTIFICATE = 8
"""A client that was asked for a certificate and has none answers with an empty Certificate (RFC 8446 section 4.4.2)."""
_CLIENT_SETTINGS = 10
"""draft-vvv-tls-alps: the client's EncryptedExtensions with empty application settings, as browsers send it."""


def shared_surplus(*, offers_settings: bool) -> tuple[int, ...]:
    """How much longer than a Finished alone the record may be in which it comes with the small messages that may precede it."""
    alone = (0, _EMPTY_CERTIFICATE)
    return (*alone, *(one + _CLIENT_SETTINGS for one in alone)) if offers_settings else alone


def _shared_lengths(length: int, *, offers_settings: bool) -> tuple[int, ...]:
    return tuple(length + surplus for surplus in shared_surplus(offers_settings=offers_settings))


def _first_protected(records: Sequence[TlsRecordView], lengths: tuple[int, ...]) -> int | None:
    """The very first protected record, if it has one of these lengths."""
    for index in range(min(len(records), _MOST_CLIENT_RECORDS)):
        if records[index].content_type == ContentType.APPLICATION_DATA:
            return index if records[index].length in lengths else None
    return None


def _first_of_length(records: Sequence[TlsRecordView], length: int) -> int | None:
    for index in range(min(len(records), _MOST_CLIENT_RECORDS)):
        record = records[index]
        if record.content_type == ContentType.APPLICATION_DATA and record.length == length:
            return index
    return None


def _server_flight_end(records: Sequence[TlsRecordView], before: int) -> int | None:
    """The last record first seen before an instant: what a client's Finished answers."""
    end = None
    for index, record in enumerate(records):
        if record.first_seen_at > before:
            break
        end = index
    return end


def _tickets(records: Sequence[TlsRecordView], start: int, *, suite: Suite, version: int) -> tuple[int, ...]:
    """One to four records of equal, ticket-like size right after the handshake, before anything larger."""
    found: list[int] = []
    since = records[start].first_seen_at if start < len(records) else 0
    for index in range(start, min(len(records), start + _MOST_TICKETS)):
        record = records[index]
        size = content_bytes(record.length, suite, version)
        if (
            size is None
            or size not in _TICKET_CONTENT
            or (found and record.length != records[found[0]].length)
            or record.first_seen_at - since > _TICKET_WINDOW_NS
        ):
            break
        found.append(index)
    # A single record of that size may as well be a response.
    return tuple(found) if len(found) > 1 else ()
