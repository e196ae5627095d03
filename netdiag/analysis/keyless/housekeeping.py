"""HTTP/2 told from record lengths, and its records that are no part of a request or an answer: preface, SETTINGS, WINDOW_UPDATE, PING."""

from __future__ import annotations

import numpy as np

from netdiag.analysis.keyless.observed import PAUSE_NS, Observed
from netdiag.analysis.keyless.rows import groups, values_at
from netdiag.wire.tables import NONE, Bool, Int64

EMPTY_FRAME_BYTES = 9
"""A frame header alone (RFC 9113 section 4.1): a SETTINGS ACK, or an empty DATA that ends a stream."""
HOUSEKEEPING = (EMPTY_FRAME_BYTES, 13, 17, 18, 22, 26)
"""SETTINGS ACK (or an empty DATA), WINDOW_UPDATE or RST_STREAM, PING, and two of the first two in one record."""
SETTINGS = tuple(sorted({9 + 6 * k + 13 * w + 9 * a for k in range(1, 10) for w in (0, 1) for a in (0, 1)}))
"""SETTINGS with one to nine values, alone or with a WINDOW_UPDATE or a SETTINGS ACK (RFC 9113 sections 6.5 and 6.9)."""
SETTINGS_WITHIN = 6
"""A server's SETTINGS is among its first so many records."""
PREFACE = (24, *sorted({33 + 6 * k + 13 * w for k in range(9) for w in (0, 1)}))
"""Preface alone, or with SETTINGS of up to eight values and perhaps a WINDOW_UPDATE (RFC 9113 section 3.4)."""
PREFACE_MOST_BYTES = 130
"""As above with PRIORITY frames: only taken for a preface when another request record follows."""
NEVER = np.iinfo(np.int64).max


def looks_like_h2(seen: Observed, talks: Bool) -> Bool:
    """Per session. Chosen in clear (TLS 1.2); or offered, and the client sent a record of the size of a SETTINGS ACK, and either the server
    did too or the client's first record has the size of a preface."""
    count = len(seen.sessions)
    acks = talks & (seen.content == EMPTY_FRAME_BYTES)
    answered, acked = np.zeros(count, bool), np.zeros(count, bool)
    answered[seen.session[acks & seen.server]] = True
    acked[seen.session[acks & ~seen.server]] = True
    opened = np.isin(values_at(seen.content, seen.first_of_each(talks & ~seen.server)), PREFACE)
    chosen = seen.sessions.h2
    likely: Bool = (chosen == 1) | ((chosen == NONE) & acked & (answered | opened))
    return likely


def housekeeping(seen: Observed, talks: Bool) -> Bool:
    """Records of a telling size. Such a record may also be a HEADERS whose fields were sent before (RFC 7541 compresses them to an octet
    each): when the same side goes on at once, with the body, it is taken for that."""
    drop = talks & np.isin(seen.content, HOUSEKEEPING)
    alike = np.flatnonzero(drop & (seen.content != EMPTY_FRAME_BYTES))
    alike = alike[alike + 1 < len(drop)]
    after, sent_at = alike + 1, seen.records.first_seen_at
    same = (seen.session[after] == seen.session[alike]) & (seen.server[after] == seen.server[alike])
    at_once = sent_at[after] - sent_at[alike] <= PAUSE_NS
    drop[alike[same & at_once & talks[after] & ~drop[after]]] = False
    return drop


def empty_data(seen: Observed, small: Bool) -> tuple[Bool, Bool]:
    """Housekeeping of the size of a SETTINGS ACK: (all but the first of each session, since there is one ACK for the client's SETTINGS; the
    first)."""
    rows = np.flatnonzero(small & (seen.content == EMPTY_FRAME_BYTES))
    later, first = np.zeros(len(small), bool), np.zeros(len(small), bool)
    if len(rows):
        begins = np.r_[True, seen.session[rows][1:] != seen.session[rows][:-1]]
        later[rows[~begins]] = True
        first[rows[begins]] = True
    return later, first


def up_to_settings(seen: Observed, answers: Bool) -> Bool:
    """Nothing of the server's comes before its SETTINGS (RFC 9113 section 3.4), so what does is no HTTP/2: tickets."""
    drop = np.zeros(len(answers), bool)
    rows = np.flatnonzero(answers)
    if not len(rows):
        return drop
    starts, group = groups(seen.session[rows])
    rank = np.arange(len(rows)) - starts[group]
    shaped = np.isin(seen.content[rows], SETTINGS) & (rank < SETTINGS_WITHIN)
    first = np.full(len(starts), NONE, np.int64)
    first[group[shaped][::-1]] = rank[shaped][::-1]
    drop[rows[rank <= first[group]]] = True
    return drop


def preface(seen: Observed, talks: Bool, h2: Bool) -> Bool:
    """The client's first record of an HTTP/2 session, when it is nothing but preface and SETTINGS."""
    found = np.zeros(len(talks), bool)
    requests = talks & ~seen.server
    first = seen.first_of_each(requests)
    known = np.flatnonzero((first != NONE) & h2)
    if not len(known):
        return found
    row = first[known]
    requests[row] = False
    second = seen.first_of_each(requests)[known]
    answer = seen.first_of_each(talks & seen.server)[known]
    goes_on = second != NONE
    before_an_answer = goes_on & (_begins(seen, second) <= _begins(seen, answer))
    size = seen.content[row]
    likely = (size >= PREFACE[0]) & (size <= PREFACE_MOST_BYTES) & before_an_answer
    found[row[(np.isin(size, PREFACE) & goes_on) | likely]] = True
    return found


def _begins(seen: Observed, rows: Int64) -> Int64:
    """When the records begin, never where there is none."""
    return np.where(rows == NONE, NEVER, seen.begins_at[np.maximum(rows, 0)])
