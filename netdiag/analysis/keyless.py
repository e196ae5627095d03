"""Requests of encrypted connections without keys: the record-length grammar (phases.md section 3), over all connections at once.

The naive rule, "the first server record after the request is the answer", is wrong for the first request of nearly every TLS 1.3
connection: session tickets, and the SETTINGS of HTTP/2, arrive first. Steps, each one function:

1. where the handshake ends for the client (``handshake_end``);
2. which records can carry a request or an answer (``speaking``): not tickets, alerts, KeyUpdates, nor HTTP/2's housekeeping;
3. runs of one direction are turns (``turns``); turns that overlap are one, marked as not separable.

Every result is marked ``grammar``, or ``bounded`` with the earliest and latest possible moment.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from netdiag.analysis.keyless_continue import CONTINUE_BYTES, HeldBack, nothing_held_back, of_each_turn
from netdiag.plain import plain
from netdiag.wire.tables import NONE, Bool, Int32, Int64, Table, TlsRecords, UInt8

Int8 = NDArray[np.int8]
CLIENT, SERVER = 0, 1
CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION_DATA = 20, 21, 22, 23

TICKETS_MOST = 4
"""A server sends one to four tickets of equal size (OpenSSL two, Go one, Chromium's peers up to four)."""
TICKET_BYTES = (60, 2_000)
"""Record length of a NewSessionTicket: a state of a few hundred octets, more with a client certificate inside."""
LONE_TICKET_BYTES = (150, 400)
SETTLING_NS = 15_000_000
"""After Finished and one round trip the server's unasked-for records (tickets, SETTINGS) have come."""
DELAYED_TICKET_NS = 60_000_000
"""The second ticket may be held back by Nagle until a delayed ACK: seen 42 ms later."""

HOUSEKEEPING = (9, 13, 17, 18, 22, 26)
"""HTTP/2: SETTINGS ACK (or an empty DATA), WINDOW_UPDATE or RST_STREAM, PING, and two of the first two in one record."""
SETTINGS = tuple(sorted({9 + 6 * k + 13 * w + 9 * a for k in range(1, 10) for w in (0, 1) for a in (0, 1)}))
"""HTTP/2: SETTINGS with one to nine values, alone or with a WINDOW_UPDATE or a SETTINGS ACK (RFC 9113 sections 6.5 and 6.9)."""
SETTINGS_WITHIN = 6
"""A server's SETTINGS is among its first so many records."""
PREFACE = (24, *sorted({33 + 6 * k + 13 * w for k in range(9) for w in (0, 1)}))
"""HTTP/2: preface alone, or with SETTINGS of up to eight values and perhaps a WINDOW_UPDATE (RFC 9113 section 3.4)."""
PREFACE_MOST_BYTES = 130
"""As above with PRIORITY frames: only taken for a preface when another request record follows."""
PAUSE_NS = 2_000_000
"""Records of one request leave back to back; HTTP/2 records with a longer pause between them are several requests."""
ALERT_BYTES, KEY_UPDATE_BYTES = 2, 5
"""Contents that TLS 1.3 hides behind type application_data (RFC 8446 sections 4.6.3 and 6)."""


@plain(frozen=True, slots=True, kw_only=True)
class Sessions(Table):
    """What the hellos of each connection say, one row per connection with TLS records, in the order of their ids."""

    connection: Int32
    tls13: Bool
    finished_length: Int32
    """Record length of an encrypted Finished alone in its record (TLS 1.3); 0 when the cipher suite is not known."""
    overhead: Int32
    """Record length − content; NONE where it is not fixed (CBC) or not known."""
    h2: Int8
    """1 chosen, 0 not possible, NONE offered but the choice is encrypted."""
    server_hello_at: Int64
    """NONE when no ServerHello was captured: the handshake is not in the capture."""
    rtt_ns: Int64
    """Round trip to the server; 0 when not known."""


@plain(frozen=True, slots=True, kw_only=True)
class Ends(Table):
    """Where the handshake of each session ends for the client; rows as in ``Sessions``."""

    finished_at: Int64
    """NONE when it did not end, or is not in the capture."""
    earliest_at: Int64
    finished_row: Int64
    """Row of the client's Finished in the records; NONE."""
    packet: Int64
    exact: Bool
    """Record types tell (TLS 1.2); otherwise sizes do, or (``earliest_at`` < ``finished_at``) only bounds."""


@plain(frozen=True, slots=True, kw_only=True)
class Turns(Table):
    """One request and its answer as far as records tell, in order. NONE where that half was not seen."""

    session: Int32
    """Row in ``Sessions``."""
    request_first_at: Int64
    request_first_packet: Int64
    request_last_at: Int64
    request_last_packet: Int64
    request_earliest_at: Int64
    """Lower bound of ``request_last_at``: HTTP/2 records after the first may be other requests."""
    response_first_at: Int64
    response_first_packet: Int64
    response_earliest_at: Int64
    """Lower bound of ``response_first_at``."""
    response_latest_at: Int64
    response_last_at: Int64
    response_last_packet: Int64
    response_end_latest_at: Int64
    """Upper bound of ``response_last_at``: an empty DATA frame that ends a stream looks like a SETTINGS ACK."""
    request_bytes: Int64
    """Record lengths."""
    response_bytes: Int64
    separable: Bool
    """False when requests overlapped, so that this is several of them."""
    h2: Bool
    head_last_at: Int64
    """Last octet before the body was held back for 100 (Continue); this and what follows is NONE for all other requests."""
    head_last_packet: Int64
    continued_at: Int64
    continued_packet: Int64
    body_first_at: Int64
    body_first_packet: Int64


def session_row(records: TlsRecords, sessions: Sessions) -> Int64:
    """Row in ``sessions`` for every record (all connections of ``records`` must be in it)."""
    if not len(records):
        return np.empty(0, np.int64)
    begins, run = _groups(records.connection)
    return np.searchsorted(sessions.connection, records.connection[begins]).astype(np.int64)[run]


def _first_per_session(mask: Bool, session: Int64, count: int) -> Int64:
    """First row of each session for which the mask holds; NONE where there is none. Rows are in stream order per direction."""
    rows = np.flatnonzero(mask)
    first = np.full(count, NONE, np.int64)
    first[session[rows[::-1]]] = rows[::-1]
    return first


def handshake_end(records: TlsRecords, sessions: Sessions) -> Ends:
    """The later of: client's Finished sent, server's Finished deliverable."""
    session, count = session_row(records, sessions), len(sessions)
    client = records.direction == CLIENT
    tls13 = sessions.tls13[session]
    row13 = _finished_13(records, sessions, session, client & tls13)
    own = _finished_12(records, session, client & ~tls13, count)
    peer = _finished_12(records, session, ~client & ~tls13, count)
    sent_at, got_at = _at(records.first_seen_at, own), _at(records.deliverable_at, peer)
    both = (sent_at != NONE) & (got_at != NONE)
    exact_at = np.where(both, np.maximum(sent_at, got_at), NONE)
    opened = _first_per_session(_after_server_hello(records, sessions, session, client & tls13), session, count)
    guess_at = _at(records.first_seen_at, opened)
    at13 = np.where(row13 != NONE, _at(records.first_seen_at, row13), guess_at)
    earliest = np.where((row13 == NONE) & (guess_at != NONE), np.minimum(sessions.server_hello_at, guess_at), at13)
    row = np.where(sessions.tls13, np.where(row13 != NONE, row13, opened), own)
    return Ends(
        finished_at=np.where(sessions.tls13, at13, exact_at),
        earliest_at=np.where(sessions.tls13, earliest, exact_at),
        finished_row=row,
        packet=_at(records.first_packet, np.where(sessions.tls13 | (sent_at >= got_at), row, peer)),
        exact=~sessions.tls13,
    )


def _after_server_hello(records: TlsRecords, sessions: Sessions, session: Int64, client: Bool) -> Bool:
    """Client records under handshake or application keys: early data come before the ServerHello."""
    hello_at = sessions.server_hello_at[session]
    late: Bool = (hello_at != NONE) & (records.first_seen_at >= hello_at)
    protected: Bool = late & client & (records.content_type == APPLICATION_DATA)
    return protected


def _finished_13(records: TlsRecords, sessions: Sessions, session: Int64, client: Bool) -> Int64:
    """A client certificate may come first, so: the first record of Finished's size."""
    wanted = sessions.finished_length[session]
    fits = (records.length == wanted) & (wanted > 0)
    return _first_per_session(fits & _after_server_hello(records, sessions, session, client), session, len(sessions))


def _finished_12(records: TlsRecords, session: Int64, side: Bool, count: int) -> Int64:
    """The first handshake record after this side's ChangeCipherSpec."""
    ccs = _first_per_session(side & (records.content_type == CHANGE_CIPHER_SPEC), session, count)
    after = (ccs[session] != NONE) & (np.arange(len(records)) > ccs[session])
    return _first_per_session(side & after & (records.content_type == HANDSHAKE), session, count)


def _at(column: Int64, rows: Int64) -> Int64:
    """Values at rows, NONE where the row is."""
    if not len(column):
        return np.full(len(rows), NONE, np.int64)
    return np.where(rows == NONE, NONE, column[np.maximum(rows, 0)])


@plain(frozen=True, slots=True, kw_only=True)
class Speaking(Table):
    """Records that can be part of a request or an answer, by session and time."""

    row: Int64
    session: Int64
    direction: UInt8
    begins_at: Int64
    """Client: first octet sent. Server: the record was deliverable."""
    ends_at: Int64
    doubtful: Bool
    """Dropped as a lone ticket or as housekeeping, but could be an answer: a bound, not a record of a turn."""
    ending: Bool
    """Of the size of a SETTINGS ACK, but in a place where an empty DATA frame ends a stream: of the answer before it, if there is one."""
    acknowledging: Bool
    """Of the same size and place, but the first such record of the session: may be the ACK, and is only a bound of the answer's end."""


def speaking(records: TlsRecords, sessions: Sessions, ends: Ends) -> tuple[Speaking, Bool]:
    """Records of requests and answers in time order, and per session whether it looks like HTTP/2."""
    session, count = session_row(records, sessions), len(sessions)
    server = records.direction == SERVER
    usable_at = np.where(records.deliverable_at != NONE, records.deliverable_at, records.last_seen_at)
    begins_at = np.where(server, usable_at, records.first_seen_at)
    ends_at = np.where(server, usable_at, np.maximum(records.last_seen_at, records.first_seen_at))
    content = np.where(sessions.overhead[session] == NONE, NONE, records.length - sessions.overhead[session])
    talks = _application(records, sessions, ends, session, server, begins_at, content) & (begins_at != NONE)
    h2 = _looks_like_h2(records, sessions, session, talks, server, content)
    # No frame is so short: with HTTP/2 it is no final chunk, but a KeyUpdate after all.
    talks &= ~(h2[session] & sessions.tls13[session] & (content == KEY_UPDATE_BYTES))
    small = _housekeeping(records, session, talks & h2[session], content)
    talks &= ~small
    window_ends = (ends.finished_at + sessions.rtt_ns + SETTLING_NS)[session]
    settling = (ends.finished_at[session] != NONE) & (begins_at <= window_ends)
    talks &= ~_up_to_settings(session, talks & server, h2, content)
    tickets, doubtful = _tickets(sessions, session, talks & server, begins_at, settling, records.length)
    talks &= ~tickets
    late_tickets = _tickets_after_early_data(records, sessions, ends, session, talks & server, begins_at, settling)
    talks &= ~late_tickets
    # The first answer of a connection is never so small: nothing of its fields was sent before.
    doubtful |= small & server & ~settling & (content != HOUSEKEEPING[0])
    talks &= ~_preface(session, count, talks, server, h2, content, begins_at)
    ending, acknowledging = _empty_data(session, small & server, content)
    rows = np.flatnonzero(talks | doubtful | ending | acknowledging)
    order = np.lexsort((begins_at[rows], _arrival(records, server)[rows], session[rows]))
    rows = rows[order]
    kept = Speaking(
        row=rows,
        session=session[rows],
        direction=records.direction[rows],
        begins_at=begins_at[rows],
        ends_at=ends_at[rows],
        doubtful=doubtful[rows],
        ending=ending[rows],
        acknowledging=acknowledging[rows],
    )
    after_an_answer = _behind_answers(kept)
    return kept.take(after_an_answer), h2


def _empty_data(session: Int64, small: Bool, content: Int64) -> tuple[Bool, Bool]:
    """Server records of the size of a SETTINGS ACK: (those after the first of a session, of which there is one for the client's SETTINGS;
    the first)."""
    rows = np.flatnonzero(small & (content == HOUSEKEEPING[0]))
    later, first = np.zeros(len(session), bool), np.zeros(len(session), bool)
    if len(rows):
        begins = np.r_[True, session[rows][1:] != session[rows][:-1]]
        later[rows[~begins]] = True
        first[rows[begins]] = True
    return later, first


def _behind_answers(kept: Speaking) -> Bool:
    """All records, but of the possible ends of answers only those right behind an answer's record."""
    ends = kept.ending | kept.acknowledging
    if not ends.any():
        return np.ones(len(kept), bool)
    place = np.arange(len(kept))
    before = np.maximum.accumulate(np.where(ends | kept.doubtful, -1, place))
    known = before >= 0
    answered: Bool = known & (kept.session[before] == kept.session) & (kept.direction[before] == SERVER)
    return ~ends | answered


def _housekeeping(records: TlsRecords, session: Int64, talks: Bool, content: Int64) -> Bool:
    """HTTP/2 records of a telling size. Such a record may also be a HEADERS whose fields were sent before (RFC 7541 compresses them to an
    octet each): when the same side goes on at once, with the body, it is taken for that."""
    drop = talks & np.isin(content, HOUSEKEEPING)
    alike = np.flatnonzero(drop & (content != HOUSEKEEPING[0]))
    alike = alike[alike + 1 < len(records)]
    after = alike + 1
    same = (session[after] == session[alike]) & (records.direction[after] == records.direction[alike])
    at_once = records.first_seen_at[after] - records.first_seen_at[alike] <= PAUSE_NS
    drop[alike[same & at_once & talks[after] & ~drop[after]]] = False
    return drop


def _arrival(records: TlsRecords, server: Bool) -> Int64:
    """Packets in whose order records count: times may step back. A server's record needs all before it. All NONE without packets."""
    stream = records.connection.astype(np.int64) * 2 + records.direction
    needed = np.maximum.accumulate(np.maximum(records.last_packet, 0) + (stream << 40)) - (stream << 40)
    packets: Int64 = np.where(
        records.last_packet == NONE, records.first_packet, np.where(server, needed, records.first_packet)
    )
    return packets


def _application(
    records: TlsRecords, sessions: Sessions, ends: Ends, session: Int64, server: Bool, begins_at: Int64, content: Int64
) -> Bool:
    """Type application_data, less what TLS 1.3 hides behind it: the handshake's second half, alerts, KeyUpdate."""
    tls13 = sessions.tls13[session]
    data = records.content_type == APPLICATION_DATA
    finished_row, finished_at = ends.finished_row[session], ends.finished_at[session]
    row = np.arange(len(records))
    no_handshake = sessions.server_hello_at[session] == NONE
    early = (records.first_seen_at < sessions.server_hello_at[session]) & ~server
    own = (row > finished_row) & (finished_row != NONE)
    after = np.where(
        server,
        (finished_at != NONE) & (begins_at > finished_at),
        own | (early & _took_early(records, sessions, session)),
    )
    hidden = tls13 & np.isin(content, (ALERT_BYTES, KEY_UPDATE_BYTES))
    usable: Bool = data & ~hidden & (~tls13 | no_handshake | after)
    return usable | _final_chunks(records, session, usable, data & after & tls13 & (content == KEY_UPDATE_BYTES))


def _final_chunks(records: TlsRecords, session: Int64, usable: Bool, alike: Bool) -> Bool:
    """``0`` CRLF CRLF in a record of its own ends a chunked body (RFC 9112 section 7.1) and is as long as a KeyUpdate, which hardly any
    peer ever sends: so behind data of the server at any time, and behind data of the client at once."""
    final = np.zeros(len(records), bool)
    rows = np.flatnonzero(alike)
    rows = rows[rows > 0]
    before = rows - 1
    same = (session[before] == session[rows]) & (records.direction[before] == records.direction[rows]) & usable[before]
    at_once = records.first_seen_at[rows] - records.first_seen_at[before] <= PAUSE_NS
    final[rows[same & (at_once | (records.direction[rows] == SERVER))]] = True
    return final


_END_OF_EARLY_DATA = 4


def _took_early(records: TlsRecords, sessions: Sessions, session: Int64) -> Bool:
    """The client ends early data with EndOfEarlyData only when the server took them (RFC 8446 section 4.5)."""
    overhead = sessions.overhead[session]
    marks = _after_server_hello(records, sessions, session, records.direction == CLIENT)
    marks &= (overhead != NONE) & (records.length - overhead == _END_OF_EARLY_DATA)
    taken: Bool = _first_per_session(marks, session, len(sessions)) != NONE
    return taken[session]


def _looks_like_h2(
    records: TlsRecords, sessions: Sessions, session: Int64, talks: Bool, server: Bool, content: Int64
) -> Bool:
    """Chosen in clear (TLS 1.2); or offered, and the client sent a record of the size of a SETTINGS ACK, and either the server did too or
    the client's first record has the size of a preface."""
    count = len(sessions)
    acks = talks & (content == HOUSEKEEPING[0])
    answered, acked, opened = np.zeros(count, bool), np.zeros(count, bool), np.zeros(count, bool)
    answered[session[acks & server]] = True
    acked[session[acks & ~server]] = True
    first = _first_per_session(talks & ~server, session, count)
    known = np.flatnonzero(first != NONE)
    opened[known] = np.isin(content[first[known]], PREFACE)
    likely: Bool = (sessions.h2 == 1) | ((sessions.h2 == NONE) & acked & (answered | opened))
    return likely


def _up_to_settings(session: Int64, answers: Bool, h2: Bool, content: Int64) -> Bool:
    """HTTP/2: nothing of the server's comes before its SETTINGS (RFC 9113 section 3.4), so what does is no HTTP/2: tickets."""
    drop = np.zeros(len(session), bool)
    rows = np.flatnonzero(answers & h2[session])
    if not len(rows):
        return drop
    starts, group = _groups(session[rows])
    rank = np.arange(len(rows)) - starts[group]
    shaped = np.isin(content[rows], SETTINGS) & (rank < SETTINGS_WITHIN)
    first = np.full(len(starts), NONE, np.int64)
    first[group[shaped][::-1]] = rank[shaped][::-1]
    drop[rows[rank <= first[group]]] = True
    return drop


def _groups(keys: Int64 | Int32) -> tuple[Int64, Int64]:
    """(where each run of equal keys starts, the number of its run for every place). ``keys`` must not be empty."""
    begins = np.r_[True, keys[1:] != keys[:-1]]
    return np.flatnonzero(begins), np.cumsum(begins) - 1


def _tickets(
    sessions: Sessions, session: Int64, answers: Bool, begins_at: Int64, settling: Bool, length: Int64
) -> tuple[Bool, Bool]:
    """(records that are tickets, those of them that could also be a short answer)."""
    tickets, doubtful = np.zeros(len(session), bool), np.zeros(len(session), bool)
    rows = np.flatnonzero(answers & sessions.tls13[session])
    if not len(rows):
        return tickets, doubtful
    starts, group = _groups(session[rows])
    counts = np.diff(np.r_[starts, len(rows)])
    rank = np.arange(len(rows)) - starts[group]
    first = rows[starts]
    equal = length[rows] == length[first][group]
    unequal_rank = np.full(len(starts), len(rows), np.int64)
    np.minimum.at(unequal_rank, group[~equal], rank[~equal])
    run = np.minimum(unequal_rank, counts)
    size = length[first]
    sized = (size >= TICKET_BYTES[0]) & (size <= TICKET_BYTES[1])
    fits = settling[first] & sized
    soon = begins_at[rows] <= begins_at[first][group] + DELAYED_TICKET_NS
    several = sized & (run >= 2) & (run <= TICKETS_MOST)
    # A busy server sends its tickets late: equal records before something else are tickets all the same, but no longer for certain.
    late = several & ~settling[first] & (counts > run)
    several &= fits | late
    found = rows[several[group] & (rank < run[group]) & soon]
    tickets[found] = True
    doubtful[found] = np.isin(session[found], session[first[late]])
    lone = fits & (run == 1) & (counts > 1) & (size >= LONE_TICKET_BYTES[0]) & (size <= LONE_TICKET_BYTES[1])
    tickets[first[lone]] = True
    doubtful[first[lone]] = True
    return tickets, doubtful


def _tickets_after_early_data(
    records: TlsRecords,
    sessions: Sessions,
    ends: Ends,
    session: Int64,
    answers: Bool,
    begins_at: Int64,
    settling: Bool,
) -> Bool:
    """Early data are answered before the client's Finished has come; the tickets follow it, a round trip after it was sent."""
    tickets = np.zeros(len(session), bool)
    finished_at = ends.finished_at[session]
    alike = answers & _took_early(records, sessions, session)
    after = begins_at >= finished_at + sessions.rtt_ns[session] * 9 // 10
    early = _first_per_session(alike & ~after, session, len(sessions))[session] != NONE
    size = records.length
    rows = np.flatnonzero(alike & after & early & settling & (size >= TICKET_BYTES[0]) & (size <= TICKET_BYTES[1]))
    if not len(rows):
        return tickets
    starts, group = _groups(session[rows])
    several = np.diff(np.r_[starts, len(rows)])[group] <= TICKETS_MOST
    equal = size[rows] == size[rows[starts]][group]
    tickets[rows[several & equal]] = True
    return tickets


def _preface(session: Int64, count: int, talks: Bool, server: Bool, h2: Bool, content: Int64, begins_at: Int64) -> Bool:
    """The client's first HTTP/2 record, when it is nothing but preface and SETTINGS."""
    preface = np.zeros(len(session), bool)
    first = _first_per_session(talks & ~server, session, count)
    known = np.flatnonzero((first != NONE) & h2)
    if not len(known):
        return preface
    row = first[known]
    later = talks & ~server
    later[row] = False
    second = _first_per_session(later, session, count)[known]
    answer = _first_per_session(talks & server, session, count)[known]
    far = np.iinfo(np.int64).max
    second_at = np.where(second == NONE, far, begins_at[np.maximum(second, 0)])
    answer_at = np.where(answer == NONE, far, begins_at[np.maximum(answer, 0)])
    size = content[row]
    small = np.isin(size, PREFACE)
    likely = (size >= PREFACE[0]) & (size <= PREFACE_MOST_BYTES) & (second != NONE) & (second_at <= answer_at)
    preface[row[(small & (second != NONE)) | likely]] = True
    return preface


def _without_continue(kept: Speaking, records: TlsRecords, sessions: Sessions, h2: Bool) -> tuple[Speaking, HeldBack]:
    """Take out 100 (Continue): a server record of its size between two client records of an HTTP/1 session."""
    if len(kept) < 3:
        return kept, nothing_held_back()
    content = records.length[kept.row] - sessions.overhead[kept.session]
    middle = np.arange(1, len(kept) - 1)
    before, after = middle - 1, middle + 1
    same = (kept.session[middle] == kept.session[before]) & (kept.session[middle] == kept.session[after])
    between = (
        (kept.direction[middle] == SERVER) & (kept.direction[before] == CLIENT) & (kept.direction[after] == CLIENT)
    )
    fits = np.isin(content[middle], CONTINUE_BYTES) & ~h2[kept.session[middle]] & ~kept.doubtful[middle]
    middle = middle[same & between & fits]
    before, after = middle - 1, middle + 1
    held = HeldBack(
        session=kept.session[middle],
        head_last_at=kept.ends_at[before],
        head_last_packet=records.last_packet[kept.row[before]],
        continued_at=kept.begins_at[middle],
        continued_packet=records.last_packet[kept.row[middle]],
        body_first_at=kept.begins_at[after],
        body_first_packet=records.first_packet[kept.row[after]],
    )
    left = np.ones(len(kept), bool)
    left[middle] = False
    return kept.take(left), held


def turns(records: TlsRecords, sessions: Sessions, ends: Ends) -> Turns:
    """Requests and answers of all sessions, by session and time."""
    found, h2 = speaking(records, sessions, ends)
    found, held = _without_continue(found, records, sessions, h2)
    bounds = found.take(found.doubtful)
    found = found.take(~found.doubtful)
    if not len(found):
        return _no_turns()
    change = (found.session[1:] != found.session[:-1]) | (found.direction[1:] != found.direction[:-1])
    starts = np.flatnonzero(np.r_[True, change])
    stops = np.r_[starts[1:], len(found)]
    asks = found.direction[starts] == CLIENT
    follows = np.r_[False, found.session[starts[1:]] == found.session[starts[:-1]]]
    # A turn begins with each run of the client, and with an answer whose request is not in the capture.
    turn = np.cumsum(asks | ~follows) - 1
    turn = _joined(turn, found, starts, stops, asks, h2, sessions)
    return _columns(records, sessions, found, bounds, held, h2, starts, stops, asks, turn)


def _joined(
    turn: Int64, found: Speaking, starts: Int64, stops: Int64, asks: Bool, h2: Bool, sessions: Sessions
) -> Int64:
    """Join turns that cannot be told apart to the one before: when answer records arrive sooner after the request than the path allows
    (they answer the other), and in HTTP/2 when several requests had been open and this one follows within a round trip."""
    session = found.session[starts]
    rtt_ns = sessions.rtt_ns[session]
    answered = np.r_[(session[1:] == session[:-1]) & ~asks[1:], False] & asks
    answer_at = np.where(answered, np.r_[found.begins_at[starts[1:]], 0], 0)
    too_soon = answered & (answer_at - found.begins_at[starts] < 0.8 * rtt_ns)
    quiet_ns = np.r_[0, found.begins_at[starts[1:]] - found.ends_at[stops[:-1] - 1]]
    at_once = asks & h2[session] & (quiet_ns < rtt_ns) & _several_before(session, asks & _pauses(found, starts))
    joins = (too_soon | at_once) & _follows_a_request(turn, asks, session)
    begins = np.zeros(int(turn[-1]) + 1, bool)
    begins[turn[joins]] = True
    return (np.cumsum(~begins) - 1)[turn]


def _pauses(found: Speaking, starts: Int64) -> Bool:
    """Runs in which a pause lies between two records."""
    pause = np.r_[0, found.begins_at[1:] - found.ends_at[:-1]]
    pause[starts] = 0
    long: Bool = np.maximum.reduceat(pause, starts) > PAUSE_NS
    return long


def _several_before(session: Int64, several: Bool) -> Bool:
    """Whether an earlier run of the same session is one of ``several``."""
    marks = np.maximum.accumulate(np.where(several, np.arange(len(several)) + 1, 0))
    before = np.r_[0, marks[:-1]]
    first, group = _groups(session)
    found: Bool = before > first[group]
    return found


def _follows_a_request(turn: Int64, asks: Bool, session: Int64) -> Bool:
    """The turn before belongs to the same session and has a request: an answer without one can take nothing in."""
    before = np.maximum(_pick(turn, np.ones(len(turn), bool), int(turn[-1]) + 1, first=True)[turn] - 1, 0)
    opens = _pick(turn, np.ones(len(turn), bool), int(turn[-1]) + 1, first=True)[turn[before]]
    follows: Bool = (turn > 0) & (session[before] == session) & asks[opens]
    return follows


def _columns(
    records: TlsRecords,
    sessions: Sessions,
    found: Speaking,
    bounds: Speaking,
    held: HeldBack,
    h2: Bool,
    starts: Int64,
    stops: Int64,
    asks: Bool,
    turn: Int64,
) -> Turns:
    count = int(turn[-1]) + 1
    first_ask = _pick(turn, asks, count, first=True)
    first_answer = _pick(turn, ~asks, count, first=True)
    last_answer = _pick(turn, ~asks, count, first=False)
    requests = np.bincount(turn[asks], minlength=count)
    begin = _pick(turn, np.ones(len(turn), bool), count, first=True)
    session = found.session[starts[begin]].astype(np.int32)
    answer_at = _value(found.begins_at, starts, first_answer)
    lengths = records.length[found.row]
    run_bytes = np.add.reduceat(lengths, starts)
    separable = requests <= 1
    request_last = _value(found.ends_at, stops - 1, first_ask)
    request_earliest = _value(found.ends_at, np.where(h2[found.session[starts]], starts, stops - 1), first_ask)
    certain = separable & (request_earliest == request_last)
    # A run begins with a record that is surely one of the answer.
    sure = np.maximum.reduceat(np.where(found.acknowledging, -1, np.arange(len(found))), starts)
    last_at = _value(found.ends_at, sure, last_answer)
    earliest = _lower_bounds(request_last, answer_at, session, bounds)
    request_first = _value(found.begins_at, starts, first_ask)
    held_row = of_each_turn(held, session.astype(np.int64), request_first, request_last)
    return Turns(
        session=session,
        request_first_at=request_first,
        request_first_packet=_value(records.first_packet[found.row], starts, first_ask),
        request_last_at=request_last,
        request_last_packet=_value(records.last_packet[found.row], stops - 1, first_ask),
        request_earliest_at=request_earliest,
        response_first_at=answer_at,
        response_first_packet=_value(records.last_packet[found.row], starts, first_answer),
        response_earliest_at=earliest,
        response_latest_at=np.where(certain, answer_at, last_at),
        response_last_at=last_at,
        response_last_packet=_value(records.last_packet[found.row], sure, last_answer),
        response_end_latest_at=_value(found.ends_at, stops - 1, last_answer),
        request_bytes=np.bincount(turn[asks], run_bytes[asks], minlength=count).astype(np.int64),
        response_bytes=np.bincount(turn[~asks], run_bytes[~asks], minlength=count).astype(np.int64),
        separable=separable,
        h2=h2[session],
        head_last_at=_at(held.head_last_at, held_row),
        head_last_packet=_at(held.head_last_packet, held_row),
        continued_at=_at(held.continued_at, held_row),
        continued_packet=_at(held.continued_packet, held_row),
        body_first_at=_at(held.body_first_at, held_row),
        body_first_packet=_at(held.body_first_packet, held_row),
    )


def _pick(turn: Int64, mask: Bool, count: int, *, first: bool) -> Int64:
    """First or last run of each turn for which the mask holds; NONE where there is none."""
    runs = np.flatnonzero(mask)
    picked = np.full(count, NONE, np.int64)
    ordered = runs[::-1] if first else runs
    picked[turn[ordered]] = ordered
    return picked


def _value(column: Int64, places: Int64, runs: Int64) -> Int64:
    return np.where(runs == NONE, NONE, column[places[np.maximum(runs, 0)]])


def _lower_bounds(asked_at: Int64, answer_at: Int64, session: Int32, bounds: Speaking) -> Int64:
    """A record between request and answer that could be the answer bounds it from below."""
    earliest = answer_at.copy()
    known = np.flatnonzero(asked_at != NONE)
    if not len(bounds) or not len(known):
        return earliest
    times = np.unique(np.concatenate([asked_at[known], bounds.begins_at]))
    asked = session[known].astype(np.int64) * len(times) + np.searchsorted(times, asked_at[known])
    place = np.searchsorted(asked, bounds.session * len(times) + np.searchsorted(times, bounds.begins_at), "right") - 1
    turn = known[np.maximum(place, 0)]
    between = (place >= 0) & (session[turn] == bounds.session) & (bounds.begins_at < answer_at[turn])
    np.minimum.at(earliest, turn[between], bounds.begins_at[between])
    return earliest


def _no_turns() -> Turns:
    none = np.empty(0, np.int64)
    names = Turns.__dataclass_fields__
    special = {"session": none.astype(np.int32), "separable": none.astype(bool), "h2": none.astype(bool)}
    return Turns(**{name: special.get(name, none) for name in names})
