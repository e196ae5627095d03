"""TLS handshakes of many connections at once, without keys: those that are regular, as columns.

Regular is a handshake in which ``observe`` would find nothing to report but its facts: one whole ClientHello in a record of its own, one
ServerHello, no retry, no alert in clear, and then what the version prescribes. Whatever is else belongs to ``observe``; the facts here are
those that the requests' phases need, and equal what ``observe`` says.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netdiag.plain import plain
from netdiag.protocols.tls import grammar
from netdiag.protocols.tls.hello_columns import client_hellos, server_hellos
from netdiag.protocols.tls.keys import is_null
from netdiag.protocols.tls.names import TLS13, ContentType, HandshakeType
from netdiag.protocols.tls.suites import suite_of
from netdiag.wire.contents import contents_of
from netdiag.wire.distinct import distinct
from netdiag.wire.octets import BIG32
from netdiag.wire.stream_order import bounds_of
from netdiag.wire.tables import NONE, Bool, Buffer, Int64, Segments, Table
from netdiag.wire.tls_records import ChainedRecords

_MOST_RECORDS = 1_000
"""Before the first record of data; ``observe`` reads a few more."""
_MOST_MESSAGES = 64
_T = HandshakeType
_SERVER_MESSAGES = (
    _T.NEW_SESSION_TICKET,
    _T.CERTIFICATE,
    _T.SERVER_KEY_EXCHANGE,
    _T.CERTIFICATE_REQUEST,
    _T.SERVER_HELLO_DONE,
    _T.CERTIFICATE_STATUS,
)
_CLIENT_MESSAGES = (_T.CERTIFICATE, _T.CERTIFICATE_VERIFY, _T.CLIENT_KEY_EXCHANGE)
"""What may follow the hellos in clear (RFC 5246 section 7.3)."""


@plain(frozen=True, slots=True, kw_only=True)
class Handshakes(Table):
    """One row per regular handshake, by connection."""

    connection: Int64
    version: Int64
    suite: Int64
    offers_h2: Bool
    offers_early: Bool
    """0-RTT data."""
    chosen_h2: Int64
    """As ``ServerHellos.h2``."""
    client_hello_at: Int64
    """First octet sent."""
    server_hello_at: Int64
    """Deliverable."""
    finished_at: Int64
    """``TlsSession.finished_at``; NONE where it cannot be told."""


def regular_handshakes(
    buffer: Buffer, segments: Segments, records: ChainedRecords, candidates: Bool
) -> tuple[Handshakes, ChainedRecords]:
    """The regular handshakes among the candidates (of each connection id), and the records of those connections."""
    flights = _Flights.of(records, candidates)
    if not len(flights.connection):
        return _none(), flights.records
    clients = _hellos(buffer, segments, flights, 0)
    servers = _hellos(buffer, segments, flights, 1)
    tls13 = servers.version == TLS13
    regular = flights.ordinary & clients.regular & servers.regular
    regular &= np.where(tls13, _nothing_else_in_clear(flights) & servers.alone, _changes_ciphers(flights))
    regular &= ~_in(servers.suite, regular, lambda suite: is_null(suite_of(suite)))
    older = np.flatnonzero(regular & ~tls13)
    if older.size:
        regular[older] = _messages_are_known(buffer, segments, flights, older)
    finished_at = np.where(tls13, _finished_13(flights, clients, servers, regular & tls13), _finished_12(flights))
    table = Handshakes(
        connection=flights.connection,
        version=servers.version,
        suite=servers.suite,
        offers_h2=clients.offers_h2,
        offers_early=clients.offers_early,
        chosen_h2=servers.h2,
        client_hello_at=flights.records.first_seen_at[flights.begin[0::2]],
        server_hello_at=_usable_at(flights.records, flights.begin[1::2]),
        finished_at=finished_at,
    )
    return table.take(regular), _records_of(flights, regular)


@plain(frozen=True, slots=True)
class _Flights:
    """Records by stream (client's and server's in turn): ``begin:data`` is the handshake, ``data:end`` begins with the first data."""

    connection: Int64
    records: ChainedRecords
    begin: Int64
    data: Int64
    end: Int64
    ordinary: Bool
    """Of each connection: both sides speak, begin with a handshake record, and have nothing but whole handshake records and
    ChangeCipherSpecs before their data."""

    @classmethod
    def of(cls, records: ChainedRecords, candidates: Bool) -> _Flights:
        bounds = bounds_of(records, len(candidates))
        both = (np.diff(bounds) > 0).reshape(-1, 2).all(axis=1) & candidates
        wanted = np.repeat(np.repeat(both, 2), np.diff(bounds))
        if not wanted.all():
            records = records.take(np.flatnonzero(wanted))
        connection = np.flatnonzero(both)
        counts = np.diff(bounds).reshape(-1, 2)[connection].reshape(-1)
        end = np.cumsum(counts)
        begin = end - counts
        kind = records.content_type
        data = _next(kind == ContentType.APPLICATION_DATA, begin, end)
        handshake = kind == ContentType.HANDSHAKE
        odd = ~handshake & (kind != ContentType.CHANGE_CIPHER_SPEC)
        odd |= handshake & (records.missing_bytes > 0)
        odd_before = np.concatenate(([0], np.cumsum(odd)))
        ordinary = odd_before[data] == odd_before[begin]
        ordinary &= handshake[begin] if len(begin) else True
        ordinary &= data - begin <= _MOST_RECORDS
        return cls(connection, records, begin, data, end, ordinary.reshape(-1, 2).all(axis=1))


def _next(mask: Bool, begin: Int64, end: Int64) -> Int64:
    """Of each range ``begin:end``: the first row for which the mask holds; ``end`` where there is none."""
    rows = np.append(np.flatnonzero(mask), len(mask))
    found: Int64 = np.minimum(rows[np.searchsorted(rows, begin)], end)
    return found


@plain(frozen=True, slots=True)
class _Hellos:
    regular: Bool
    alone: Bool
    """Nothing else is in its record."""
    version: Int64
    suite: Int64
    h2: Int64
    offers_h2: Bool
    offers_settings: Bool
    offers_early: Bool


def _hellos(buffer: Buffer, segments: Segments, flights: _Flights, side: int) -> _Hellos:
    count = len(flights.connection)
    regular, alone, offers_h2, offers_settings, offers_early = (np.zeros(count, np.bool_) for _ in range(5))
    version, suite, h2 = (np.full(count, NONE, np.int64) for _ in range(3))
    sessions = np.flatnonzero(flights.ordinary)
    rows = flights.begin[2 * sessions + side]
    for part in contents_of(buffer, segments, flights.records, rows):
        which = sessions[np.searchsorted(rows, part.rows)]
        head = part.octets.column(part.at, BIG32)
        body, stop = part.at + 4, part.at + 4 + (head & 0xFFFFFF)
        whole = (part.at + 4 <= part.end) & (stop <= part.end)
        alone[which] = stop == part.end
        if side == 0:
            found = client_hellos(part.octets, body, np.where(whole, stop, body))
            regular[which] = whole & (head >> 24 == _T.CLIENT_HELLO) & found.regular & (stop == part.end)
            offers_h2[which], offers_settings[which] = found.offers_h2, found.offers_settings
            offers_early[which] = found.offers_early
        else:
            answer = server_hellos(part.octets, body, np.where(whole, stop, body))
            regular[which] = whole & (head >> 24 == _T.SERVER_HELLO) & answer.regular
            version[which], suite[which], h2[which] = answer.version, answer.suite, answer.h2
    return _Hellos(regular, alone, version, suite, h2, offers_h2, offers_settings, offers_early)


def _nothing_else_in_clear(flights: _Flights) -> Bool:
    """TLS 1.3: after the hello only ChangeCipherSpecs for middleboxes (RFC 8446 appendix D.4)."""
    handshake = np.concatenate(([0], np.cumsum(flights.records.content_type == ContentType.HANDSHAKE)))
    single = handshake[flights.data] - handshake[flights.begin] == 1
    return np.asarray(single.reshape(-1, 2).all(axis=1))


def _changed_at(flights: _Flights) -> Int64:
    """Row of the first ChangeCipherSpec of each stream's handshake; its ``data`` where there is none."""
    return _next(flights.records.content_type == ContentType.CHANGE_CIPHER_SPEC, flights.begin, flights.data)


def _changes_ciphers(flights: _Flights) -> Bool:
    """TLS 1.2 and before: a ChangeCipherSpec and the Finished right behind it, on both sides."""
    after = _changed_at(flights) + 1
    kinds = np.append(flights.records.content_type, np.uint8(0))
    good = (after < flights.data) & (kinds[np.minimum(after, len(kinds) - 1)] == ContentType.HANDSHAKE)
    return np.asarray(good.reshape(-1, 2).all(axis=1))


def _messages_are_known(buffer: Buffer, segments: Segments, flights: _Flights, sessions: Int64) -> Bool:
    """Of the chosen sessions: every record up to the ChangeCipherSpec holds whole messages of expected kinds."""
    out = np.ones(len(sessions), np.bool_)
    changed = _changed_at(flights)
    for side, expected, hello in ((0, _CLIENT_MESSAGES, _T.CLIENT_HELLO), (1, _SERVER_MESSAGES, _T.SERVER_HELLO)):
        stream = 2 * sessions + side
        begin, stop = flights.begin[stream], changed[stream]
        counts = stop - begin
        owner = np.repeat(np.arange(len(sessions)), counts)
        rows = np.arange(len(owner)) + np.repeat(begin - (np.cumsum(counts) - counts), counts)
        for part in contents_of(buffer, segments, flights.records, rows):
            place = np.searchsorted(rows, part.rows)
            at, end, mine = part.at.copy(), part.end, owner[place]
            first = part.rows == begin[mine]
            for _ in range(_MOST_MESSAGES):
                head = part.octets.column(at, BIG32)
                known = np.isin(head >> 24, expected) | (first & (head >> 24 == hello))
                following = at + 4 + (head & 0xFFFFFF)
                out[mine[~known | (at + 4 > end) | (following > end)]] = False
                more = known & (following < end)
                if not more.any():
                    break
                at, end, mine, first = following[more], end[more], mine[more], np.zeros(int(more.sum()), np.bool_)
                part = type(part)(part.octets, part.rows, at, end)
            else:
                out[mine] = False
    return out


def _in(values: Int64, chosen: Bool, holds: object) -> Bool:
    """Which of the chosen values meet a condition that is asked once for each distinct one."""
    asked = distinct(values[chosen])
    return np.isin(values, [value for value in asked.tolist() if holds(value)])  # type: ignore[operator]


def _last_octet_at(records: ChainedRecords, rows: Int64) -> Int64:
    last = records.last_seen_at[rows]
    return np.where(last == NONE, records.first_seen_at[rows], last)


def _usable_at(records: ChainedRecords, rows: Int64) -> Int64:
    usable = records.deliverable_at[rows]
    return np.where(usable == NONE, _last_octet_at(records, rows), usable)


def _finished_12(flights: _Flights) -> Int64:
    """The later of both Finished, but never after the first request octet (False Start); only for those that change ciphers."""
    records = flights.records
    row = np.minimum(_changed_at(flights) + 1, len(records) - 1)
    sent, delivered = _last_octet_at(records, row[0::2]), _usable_at(records, row[1::2])
    data, end = flights.data[0::2], flights.end[0::2]
    return _before_data(flights, np.maximum(sent, delivered), sent, np.where(data < end, data, NONE))


def _before_data(flights: _Flights, ended: Int64, sent: Int64, data: Int64) -> Int64:
    first = np.where(data == NONE, np.iinfo(np.int64).max, flights.records.first_seen_at[np.maximum(data, 0)])
    return np.minimum(ended, np.maximum(sent, first))


def _finished_13(flights: _Flights, clients: _Hellos, servers: _Hellos, chosen: Bool) -> Int64:
    """By the size of the client's Finished, as ``grammar.finished_by_size``."""
    records, count = flights.records, len(flights.connection)
    own = _finished_rows(flights, clients, servers, chosen)
    known = own != NONE
    row = np.maximum(own, 0)
    sent = _last_octet_at(records, row)
    begin, end = flights.begin[1::2], flights.end[1::2]
    owner = np.repeat(np.arange(count), end - begin)
    rows = np.arange(len(owner)) + np.repeat(begin - (np.cumsum(end - begin) - (end - begin)), end - begin)
    later = np.zeros(len(records), np.bool_)
    later[rows] = records.first_seen_at[rows] > records.first_seen_at[row][owner]
    flight_end = _next(later, begin, end) - 1
    delivered = np.where(flight_end >= begin, _usable_at(records, flight_end), sent)
    following = np.where(row + 1 < flights.end[0::2], row + 1, NONE)
    ended = _before_data(flights, np.maximum(sent, delivered), sent, following)
    return np.where(known, ended, NONE)


def _finished_rows(flights: _Flights, clients: _Hellos, servers: _Hellos, chosen: Bool) -> Int64:
    """The client's record that is its Finished; NONE where no record has its size in its place."""
    records, count = flights.records, len(flights.connection)
    lengths = np.full(count, NONE, np.int64)
    for suite in distinct(servers.suite[chosen]).tolist():
        length = grammar.finished_length(suite_of(suite), TLS13)
        lengths[chosen & (servers.suite == suite)] = NONE if length is None else length
    begin, data, end = flights.begin[0::2], flights.data[0::2], flights.end[0::2]
    there = (data < end) & (data - begin < _MOST_RECORDS)
    beyond = records.length[np.minimum(data, len(records) - 1)] - lengths
    shared = np.isin(beyond, grammar.shared_surplus(offers_settings=False))
    shared |= clients.offers_settings & np.isin(beyond, grammar.shared_surplus(offers_settings=True))
    owner = np.repeat(np.arange(2 * count) // 2, flights.end - flights.begin)
    fits = (records.content_type == ContentType.APPLICATION_DATA) & (records.length == lengths[owner])
    alone = _next(fits, begin, np.minimum(end, begin + _MOST_RECORDS))
    found = np.where(alone < np.minimum(end, begin + _MOST_RECORDS), alone, NONE)
    return np.where(lengths == NONE, NONE, np.where(there & shared, data, found))


def _records_of(flights: _Flights, chosen: Bool) -> ChainedRecords:
    if chosen.all():
        return flights.records
    wanted = np.repeat(np.repeat(chosen, 2), flights.end - flights.begin)
    return flights.records.take(np.flatnonzero(wanted))


def _none() -> Handshakes:
    nothing = np.empty(0, np.int64)
    columns: dict[str, Any] = dict.fromkeys(Handshakes.__dataclass_fields__, nothing)
    return Handshakes(**columns | dict.fromkeys(("offers_h2", "offers_early"), nothing.astype(np.bool_)))
