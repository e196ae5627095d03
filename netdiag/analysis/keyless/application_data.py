"""Records of application data: type application_data, less what TLS 1.3 hides behind that type (RFC 8446 section 5.2)."""

from __future__ import annotations

import numpy as np

from netdiag.analysis.keyless.observed import PAUSE_NS, Observed
from netdiag.protocols.tls.names import ContentType
from netdiag.wire.tables import NONE, Bool

ALERT_BYTES, KEY_UPDATE_BYTES = 2, 5
"""Contents that TLS 1.3 hides behind type application_data (RFC 8446 sections 4.6.3 and 6)."""


def application_data(seen: Observed) -> Bool:
    """Less the handshake's second half, alerts, and KeyUpdates."""
    tls13 = seen.sessions.tls13[seen.session]
    data = seen.records.content_type == ContentType.APPLICATION_DATA
    no_handshake = seen.sessions.server_hello_at[seen.session] == NONE
    after = _after_the_handshake(seen)
    hidden = tls13 & np.isin(seen.content, (ALERT_BYTES, KEY_UPDATE_BYTES))
    usable = data & ~hidden & (~tls13 | no_handshake | after)
    final = _final_chunks(seen, usable, data & after & tls13 & (seen.content == KEY_UPDATE_BYTES))
    known: Bool = (usable | final) & (seen.begins_at != NONE)
    return known


def _after_the_handshake(seen: Observed) -> Bool:
    """Sent under application keys, as far as TLS 1.3 shows; early data that the server took are, too."""
    finished_row, finished_at = seen.ends.finished_row[seen.session], seen.ends.finished_at[seen.session]
    early = seen.records.first_seen_at < seen.sessions.server_hello_at[seen.session]
    own = (np.arange(len(seen.records)) > finished_row) & (finished_row != NONE)
    answers = (finished_at != NONE) & (seen.begins_at > finished_at)
    after: Bool = np.where(seen.server, answers, own | (early & seen.took_early))
    return after


def _final_chunks(seen: Observed, usable: Bool, alike: Bool) -> Bool:
    """``0`` CRLF CRLF in a record of its own ends a chunked body (RFC 9112 section 7.1) and is as long as a KeyUpdate, which hardly any
    peer ever sends: so behind data of the server at any time, and behind data of the client at once."""
    final = np.zeros(len(alike), bool)
    rows = np.flatnonzero(alike)
    rows = rows[rows > 0]
    before, sent_at = rows - 1, seen.records.first_seen_at
    same = (seen.session[before] == seen.session[rows]) & (seen.server[before] == seen.server[rows]) & usable[before]
    at_once = sent_at[rows] - sent_at[before] <= PAUSE_NS
    final[rows[same & (at_once | seen.server[rows])]] = True
    return final
