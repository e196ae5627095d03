"""TLS sessions that nothing opened, from whatever layer, in the tables of the grammar; and what the grammar says of each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from netdiag.analysis.keyless.drafts import finished_mark
from netdiag.analysis.keyless.handshake import handshake_end
from netdiag.analysis.keyless.tables import Ends, Sessions, Turns
from netdiag.analysis.keyless.turns import turns
from netdiag.analysis.marks import Mark
from netdiag.protocols.tls import grammar
from netdiag.protocols.tls.names import TLS13, ContentType
from netdiag.protocols.tls.suite_names import known_suites
from netdiag.protocols.tls.suites import suite_of
from netdiag.records.tls import TlsSession
from netdiag.wire.record_view import TlsRecordView
from netdiag.wire.tables import NONE, TlsRecords


class Unopened(NamedTuple):
    """A TLS session without keys and its records."""

    session: TlsSession | None
    client: Sequence[TlsRecordView]
    server: Sequence[TlsRecordView]
    rtt_ns: int


class UnopenedTurns(NamedTuple):
    """What record lengths tell of one session."""

    turns: Turns
    rows: range
    """Those of this session in ``turns``."""
    finished: Mark | None
    """End of the handshake; None when it is not in the capture."""


def unopened_turns(unopened: Sequence[Unopened]) -> list[UnopenedTurns]:
    """One per session, in their order."""
    if not unopened:
        return []
    sessions, records = sessions_table(unopened), records_table(unopened)
    ends = handshake_end(records, sessions)
    found = turns(records, sessions, ends)
    edges = np.searchsorted(found.session, np.arange(len(unopened) + 1)).tolist()
    return [_of_session(found, ends, i, range(edges[i], edges[i + 1])) for i in range(len(unopened))]


def _of_session(found: Turns, ends: Ends, session: int, rows: range) -> UnopenedTurns:
    return UnopenedTurns(found, rows, finished_mark(ends, session))


class _Sizes(NamedTuple):
    finished_length: int
    overhead: int


@lru_cache(maxsize=1)
def _numbers() -> dict[str, int]:
    return {name: number for number, name in known_suites().items()}


@lru_cache(maxsize=256)
def sizes_of(version: str, cipher_suite: str) -> _Sizes:
    """What records of these parameters add to their content."""
    number = _numbers().get(cipher_suite)
    if number is None:
        return _Sizes(0, NONE)
    suite = suite_of(number)
    numeric = TLS13 if version.startswith("TLSv1.3") else 0x0303
    finished, overhead = grammar.finished_length(suite, numeric), grammar.expansion(suite, numeric)
    return _Sizes(finished or 0, NONE if overhead is None else overhead)


def _h2(session: TlsSession) -> int:
    """1 chosen, 0 not possible, NONE when it may have been chosen where it cannot be read."""
    if session.alpn is not None:
        return int(session.alpn.startswith("h2"))
    hidden = session.version is None or session.version.startswith("TLSv1.3")
    may_have_been_offered = session.client_hello_at is None or "h2" in session.alpn_offered
    return NONE if hidden and may_have_been_offered else 0


def sessions_table(unopened: Sequence[Unopened]) -> Sessions:
    """One row per session; its number takes the place of the connection's id."""
    rows = [_row(one) for one in unopened]
    table = np.array(rows, np.int64).reshape(len(rows), 6)
    tls13, finished, overhead, h2, hello_at, rtt = table.T
    return Sessions(
        connection=np.arange(len(rows), dtype=np.int32),
        tls13=tls13.astype(bool),
        finished_length=finished.astype(np.int32),
        overhead=overhead.astype(np.int32),
        h2=h2.astype(np.int8),
        server_hello_at=hello_at,
        rtt_ns=rtt,
    )


def _row(one: Unopened) -> tuple[int, int, int, int, int, int]:
    session = one.session
    if session is None or session.version is None:
        h2 = NONE if session is None else _h2(session)
        return (1, 0, _TAG_13, h2, NONE, one.rtt_ns) if _hides_alerts(one) else (0, 0, NONE, h2, NONE, one.rtt_ns)
    sizes = sizes_of(session.version, session.cipher_suite or "")
    tls13 = session.version.startswith("TLSv1.3")
    hello_at = NONE if session.server_hello_at is None else session.server_hello_at
    return int(tls13), sizes.finished_length, sizes.overhead, _h2(session), hello_at, one.rtt_ns


_TAG_13 = 17
"""TLS 1.3: content type and tag of every common suite."""
_ALERT_13 = 19
"""An alert as TLS 1.3 hides it. No suite of TLS 1.2 makes data records of this length: AES-GCM adds 24 octets, CBC makes whole blocks."""


def _hides_alerts(one: Unopened) -> bool:
    """Whether records tell TLS 1.3 where no ServerHello was captured."""
    return any(
        r.content_type == ContentType.APPLICATION_DATA and r.length == _ALERT_13
        for side in (one.client, one.server)
        for r in side
    )


def records_table(unopened: Sequence[Unopened]) -> TlsRecords:
    """All records, sorted as ``TlsRecords`` are, numbered by session."""
    rows = [
        (number, direction, *_record(view))
        for number, one in enumerate(unopened)
        for direction, side in enumerate((one.client, one.server))
        for view in side
    ]
    columns = np.array(rows, np.int64).reshape(len(rows), 12).T
    kinds = (np.int32, np.uint8, np.int64, np.uint8, np.uint16, *(np.int64,) * 7)
    names = (
        "connection",
        "direction",
        "stream_offset",
        "content_type",
        "version",
        "length",
        "first_packet",
        "last_packet",
    )
    times = ("first_seen_at", "last_seen_at", "deliverable_at", "missing_bytes")
    arrays = {name: column.astype(kind) for name, column, kind in zip((*names, *times), columns, kinds, strict=True)}
    return TlsRecords(**arrays)


def _record(view: TlsRecordView) -> tuple[int, int, int, int, int, int, int, int, int, int]:
    def known(value: int | None) -> int:
        return NONE if value is None else value

    return (
        view.stream_offset,
        view.content_type,
        view.version,
        view.length,
        known(view.first_packet),
        known(view.last_packet),
        view.first_seen_at,
        known(view.last_seen_at),
        known(view.deliverable_at),
        view.missing_bytes,
    )
