"""Small conversations for the record-length grammar: who sent a TLS record of which length, when."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netdiag.analysis.keyless.handshake import handshake_end
from netdiag.analysis.keyless.tables import Sessions, Turns
from netdiag.analysis.keyless.turns import turns
from netdiag.wire.tables import NONE, TlsRecords

MS = 1_000_000
TAG13 = 17
FINISHED = 69
RTT_MS = 20


class Record(NamedTuple):
    who: str
    at_ms: float
    length: int
    type: int = 23


def hello(*, at_ms: float = 0, server_flight: tuple[int, ...] = (40, 3_000, 281, FINISHED)) -> list[Record]:
    """A TLS 1.3 handshake of 22 ms seen at the client."""
    flight_at = at_ms + RTT_MS
    return [
        Record("client", at_ms, 512, 22),
        Record("server", flight_at, 122, 22),
        Record("server", flight_at, 1, 20),
        *(Record("server", flight_at + 0.01 * (i + 1), length) for i, length in enumerate(server_flight)),
        Record("client", at_ms + 22, 1, 20),
        Record("client", at_ms + 22, FINISHED),
    ]


def table(conversations: list[list[Record]]) -> TlsRecords:
    rows = []
    for connection, records in enumerate(conversations):
        for direction, who in enumerate(("client", "server")):
            offset = 0
            for record in records:
                if record.who == who:
                    rows.append((connection, direction, offset, record))
                    offset += record.length + 5
    at = np.array([int(r.at_ms * MS) for *_, r in rows], np.int64)
    packets = np.argsort(np.argsort(at, kind="stable"), kind="stable").astype(np.int64) + 1
    return TlsRecords(
        connection=np.array([c for c, *_ in rows], np.int32),
        direction=np.array([d for _, d, *_ in rows], np.uint8),
        stream_offset=np.array([o for *_, o, _ in rows], np.int64),
        content_type=np.array([r.type for *_, r in rows], np.uint8),
        version=np.full(len(rows), 0x0303, np.uint16),
        length=np.array([r.length for *_, r in rows], np.int64),
        first_packet=packets,
        last_packet=packets,
        first_seen_at=at,
        last_seen_at=at,
        deliverable_at=at,
        missing_bytes=np.zeros(len(rows), np.int64),
    )


def sessions(
    n: int,
    *,
    tls13: bool = True,
    h2: int = 0,
    overhead: int = TAG13,
    hello_at_ms: float | None = RTT_MS,
    rtt_ms: float = RTT_MS,
) -> Sessions:
    return Sessions(
        connection=np.arange(n, dtype=np.int32),
        tls13=np.full(n, tls13),
        finished_length=np.full(n, FINISHED, np.int32),
        overhead=np.full(n, overhead, np.int32),
        h2=np.full(n, h2, np.int8),
        server_hello_at=np.full(n, NONE if hello_at_ms is None else int(hello_at_ms * MS), np.int64),
        rtt_ns=np.full(n, int(rtt_ms * MS), np.int64),
    )


def heard(conversation: list[Record], facts: Sessions | None = None) -> Turns:
    records, known = table([conversation]), facts or sessions(1)
    return turns(records, known, handshake_end(records, known))


def waits_ms(found: Turns) -> list[float]:
    return [float(w) for w in (found.response_first_at - found.request_last_at) / MS]


TICKETS = [Record("server", 42.5, 250), Record("server", 42.6, 250)]
"""Two, half a round trip after the client's Finished came."""
