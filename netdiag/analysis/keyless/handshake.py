"""Where the handshake of each session ends for the client: record types tell in TLS 1.2, sizes in TLS 1.3."""

from __future__ import annotations

import numpy as np

from netdiag.analysis.keyless.rows import first_per_session, session_row, values_at
from netdiag.analysis.keyless.tables import Ends, Sessions
from netdiag.protocols.conversation import CLIENT
from netdiag.protocols.tls.names import ContentType
from netdiag.wire.tables import NONE, Bool, Int64, TlsRecords


def handshake_end(records: TlsRecords, sessions: Sessions) -> Ends:
    """The later of: client's Finished sent, server's Finished deliverable."""
    session = session_row(records, sessions)
    typed, sized = _by_types(records, sessions, session), _by_sizes(records, sessions, session)
    columns = {name: (getattr(sized, name), getattr(typed, name)) for name in Ends.__dataclass_fields__}
    return Ends(**{name: np.where(sessions.tls13, of_13, of_12) for name, (of_13, of_12) in columns.items()})


def after_server_hello(records: TlsRecords, sessions: Sessions, session: Int64) -> Bool:
    """Client records under handshake or application keys: early data come before the ServerHello."""
    hello_at = sessions.server_hello_at[session]
    late: Bool = (hello_at != NONE) & (records.first_seen_at >= hello_at)
    protected: Bool = late & (records.direction == CLIENT) & (records.content_type == ContentType.APPLICATION_DATA)
    return protected


def _by_types(records: TlsRecords, sessions: Sessions, session: Int64) -> Ends:
    """Up to TLS 1.2 a Finished is a handshake record behind a ChangeCipherSpec."""
    old, client = ~sessions.tls13[session], records.direction == CLIENT
    own = _behind_change_cipher_spec(records, session, client & old, len(sessions))
    peer = _behind_change_cipher_spec(records, session, ~client & old, len(sessions))
    sent_at, got_at = values_at(records.first_seen_at, own), values_at(records.deliverable_at, peer)
    finished_at = np.where((sent_at != NONE) & (got_at != NONE), np.maximum(sent_at, got_at), NONE)
    return Ends(
        finished_at=finished_at,
        earliest_at=finished_at,
        finished_row=own,
        packet=values_at(records.first_packet, np.where(sent_at >= got_at, own, peer)),
        exact=np.ones(len(sessions), bool),
    )


def _behind_change_cipher_spec(records: TlsRecords, session: Int64, side: Bool, count: int) -> Int64:
    """The first handshake record after this side's ChangeCipherSpec."""
    ccs = first_per_session(side & (records.content_type == ContentType.CHANGE_CIPHER_SPEC), session, count)
    after = (ccs[session] != NONE) & (np.arange(len(records)) > ccs[session])
    return first_per_session(side & after & (records.content_type == ContentType.HANDSHAKE), session, count)


def _by_sizes(records: TlsRecords, sessions: Sessions, session: Int64) -> Ends:
    """TLS 1.3 hides the type. A client certificate may come first, so: the client's first record of Finished's size; and where none has it
    (padding), the end lies between the ServerHello and the client's first protected record."""
    count, protected = len(sessions), after_server_hello(records, sessions, session)
    protected &= sessions.tls13[session]
    wanted = sessions.finished_length[session]
    found = first_per_session(protected & (records.length == wanted) & (wanted > 0), session, count)
    row = np.where(found != NONE, found, first_per_session(protected, session, count))
    at = values_at(records.first_seen_at, row)
    guessed = (found == NONE) & (row != NONE)
    return Ends(
        finished_at=at,
        earliest_at=np.where(guessed, np.minimum(sessions.server_hello_at, at), at),
        finished_row=row,
        packet=values_at(records.first_packet, row),
        exact=np.zeros(count, bool),
    )
