"""What lengths, types and times tell of every record, in the light of its session: what all rules of the grammar look at."""

from __future__ import annotations

import numpy as np

from netdiag.analysis.keyless.handshake import after_server_hello
from netdiag.analysis.keyless.rows import first_per_session, session_row
from netdiag.analysis.keyless.tables import Ends, Sessions
from netdiag.plain import plain
from netdiag.protocols.conversation import SERVER
from netdiag.wire.tables import NONE, Bool, Int64, TlsRecords

SETTLING_NS = 15_000_000
"""After Finished and one round trip the server's unasked-for records (tickets, SETTINGS) have come."""
PAUSE_NS = 2_000_000
"""Records of one request leave back to back; HTTP/2 records with a longer pause between them are several requests."""
END_OF_EARLY_DATA_BYTES = 4


@plain(frozen=True, slots=True, kw_only=True)
class Observed:
    """Columns with one row per record, beside the tables they were made from."""

    records: TlsRecords
    sessions: Sessions
    ends: Ends
    session: Int64
    """Row in ``sessions`` and ``ends``."""
    server: Bool
    content: Int64
    """Octets inside; NONE where the cipher suite does not tell."""
    begins_at: Int64
    """Client: first octet sent. Server: the record was deliverable."""
    ends_at: Int64
    settling: Bool
    """The server may still be sending what nobody asked for."""
    took_early: Bool
    """Of a session whose server took the client's early data."""

    def first_of_each(self, mask: Bool) -> Int64:
        """First row of each session for which the mask holds; NONE where there is none."""
        return first_per_session(mask, self.session, len(self.sessions))


def observe(records: TlsRecords, sessions: Sessions, ends: Ends) -> Observed:
    """The columns of every record."""
    session = session_row(records, sessions)
    server = records.direction == SERVER
    usable_at = np.where(records.deliverable_at != NONE, records.deliverable_at, records.last_seen_at)
    begins_at = np.where(server, usable_at, records.first_seen_at)
    overhead = sessions.overhead[session]
    content = np.where(overhead == NONE, NONE, records.length - overhead)
    settled_at = (ends.finished_at + sessions.rtt_ns + SETTLING_NS)[session]
    return Observed(
        records=records,
        sessions=sessions,
        ends=ends,
        session=session,
        server=server,
        content=content,
        begins_at=begins_at,
        ends_at=np.where(server, usable_at, np.maximum(records.last_seen_at, records.first_seen_at)),
        settling=(ends.finished_at[session] != NONE) & (begins_at <= settled_at),
        took_early=_took_early(records, sessions, session, content),
    )


def _took_early(records: TlsRecords, sessions: Sessions, session: Int64, content: Int64) -> Bool:
    """The client ends early data with EndOfEarlyData only when the server took them (RFC 8446 section 4.5)."""
    marks = after_server_hello(records, sessions, session) & (content == END_OF_EARLY_DATA_BYTES)
    taken: Bool = first_per_session(marks, session, len(sessions)) != NONE
    return taken[session]
