"""TLS connections that the keys open from end to end and that speak regular HTTP inside: their exchanges in brief.

Handshakes are judged by columns; what is left per connection is to take off the protection and to find the messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate

import numpy as np

from netdiag.analysis.brief import BriefTurns, Chunks, Instants, rows_of, told
from netdiag.plain import plain
from netdiag.protocols.brief_turn import Octets
from netdiag.protocols.tls.keylog import MASTER, KeyLog
from netdiag.protocols.tls.names import TLS13, ContentType
from netdiag.protocols.tls.regular import Handshakes, regular_handshakes
from netdiag.protocols.tls.straight import Opened, Record, opened_12, opened_13
from netdiag.protocols.tls.straight_keys import ClearFlight, protections_12
from netdiag.protocols.tls.suites import suite_of
from netdiag.wire.contents import contents_of
from netdiag.wire.distinct import distinct
from netdiag.wire.stream_order import streams_of
from netdiag.wire.tables import NONE, Bool, Buffer, Int64, Segments
from netdiag.wire.tls_records import ChainedRecords

_HEADER_BYTES = 5
MOST_BYTES = 4 << 20
"""A direction with more octets is heard as it comes; what a connection costs does not matter beside them."""
BATCH_BYTES = 16 << 20
_RANDOM = slice(6, 38)
"""Of a ClientHello with the message's header."""


def keyed_turns(
    buffer: Buffer, segments: Segments, records: ChainedRecords, candidates: Bool, keylog: KeyLog
) -> BriefTurns:
    """The exchanges of those candidates (by connection number) that are regular."""
    handshakes, own = regular_handshakes(buffer, segments, records, candidates)
    rows: list[tuple[int, ...]] = []
    for chosen, of_chosen in _batches(handshakes, own):
        sessions = _Sessions(buffer, segments, of_chosen, chosen, keylog)
        rows += [row for session in range(len(chosen)) for row in _rows(sessions, session)]
    return BriefTurns.of(rows)


def _batches(handshakes: Handshakes, records: ChainedRecords) -> Iterator[tuple[Handshakes, ChainedRecords]]:
    """Sessions all of whose records are there, and not too large to be looked at in one piece; so many at a time that their contents may
    be in memory."""
    begins, ends = _bounds(handshakes, records)
    sizes = _between(records.length, begins, ends)
    odd = _between(_odd(records), begins, ends) + (sizes > MOST_BYTES)
    whole = np.flatnonzero((odd == 0).reshape(-1, 2).all(axis=1) & ~handshakes.offers_early)
    batch = np.cumsum(sizes.reshape(-1, 2).sum(axis=1)[whole]) // BATCH_BYTES
    for number in distinct(batch).tolist():
        chosen = whole[batch == number]
        edges = np.zeros(len(records) + 1, np.int64)
        np.add.at(edges, begins.reshape(-1, 2)[chosen], 1)
        np.add.at(edges, ends.reshape(-1, 2)[chosen], -1)
        yield handshakes.take(chosen), records.take(np.cumsum(edges[:-1]) > 0)


def _bounds(handshakes: Handshakes, records: ChainedRecords) -> tuple[Int64, Int64]:
    """First row of each direction and the one behind its last; the client's of session ``s`` is number ``2s``."""
    streams = streams_of(records)
    wanted = np.repeat(2 * handshakes.connection, 2) + np.tile((0, 1), len(handshakes))
    return np.searchsorted(streams, wanted), np.searchsorted(streams, wanted, "right")


class _Sessions:
    """The records of some sessions as Python's numbers. A session is a row of ``handshakes``."""

    def __init__(
        self, buffer: Buffer, segments: Segments, records: ChainedRecords, handshakes: Handshakes, keylog: KeyLog
    ) -> None:
        self._buffer, self._keylog = buffer, keylog
        begins, ends = _bounds(handshakes, records)
        self.begins: list[int] = begins.tolist()
        """As in ``_bounds``."""
        self._ends: list[int] = ends.tolist()
        self.connection: list[int] = handshakes.connection.tolist()
        self._version, self._suite = handshakes.version.tolist(), handshakes.suite.tolist()
        self._kind: list[int] = records.content_type.tolist()
        self._wire_version: list[int] = records.version.tolist()
        self._length, self._place = records.length.tolist(), records.content_offset.tolist()
        times = records.first_seen_at, records.last_seen_at, records.deliverable_at, records.first_packet
        self.at = Instants(*(column.tolist() for column in times))
        self._spread = _spread(buffer, segments, records)

    def opened(self, session: int) -> tuple[_Side, _Side] | None:
        """What both sides said; None where the session does not open from end to end."""
        hello = self._fragment(self.begins[2 * session])
        secrets = self._keylog.of(hello[_RANDOM])
        if not secrets:
            return None
        if self._version[session] != TLS13:
            return self._opened_12(session, hello, secrets)
        begins = self.begins[2 * session] + 1, self.begins[2 * session + 1] + 1
        client, server = (self._records(2 * session + side, begin) for side, begin in enumerate(begins))
        return _sides(begins, opened_13(client, server, secrets, suite_of(self._suite[session]), TLS13))

    def _opened_12(self, session: int, hello: bytes, secrets: Mapping[str, bytes]) -> tuple[_Side, _Side] | None:
        changes = self._change(2 * session), self._change(2 * session + 1)
        flight = ClearFlight.of(self._fragment(row) for row in range(self.begins[2 * session + 1], changes[1]))
        master, suite = secrets.get(MASTER), suite_of(self._suite[session])
        if flight is None or master is None:
            return None
        made = protections_12(suite, self._version[session], master, hello[_RANDOM], flight)
        if made is None:
            return None
        for name in flight.resumable:
            self._keylog.remember(name, master)
        begins = changes[0] + 1, changes[1] + 1
        client, server = (self._records(2 * session + side, begin) for side, begin in enumerate(begins))
        return _sides(begins, opened_12(client, server, made))

    def _change(self, stream: int) -> int:
        """Row of the ChangeCipherSpec."""
        return self._kind.index(ContentType.CHANGE_CIPHER_SPEC, self.begins[stream], self._ends[stream])

    def _records(self, stream: int, begin: int) -> list[Record]:
        rows = range(begin, self._ends[stream])
        return [(self._kind[row], self._wire_version[row], self._fragment(row)) for row in rows]

    def _fragment(self, row: int) -> bytes:
        """A record's content without its header."""
        place = self._place[row]
        return bytes(self._buffer[place : place + self._length[row]]) if place != NONE else self._spread[row]


def _between(column: Int64 | Bool, begins: Int64, ends: Int64) -> Int64:
    """Sums of a column over ranges of rows."""
    before = np.concatenate(([0], np.cumsum(column)))
    return np.asarray(before[ends] - before[begins])


def _odd(records: ChainedRecords) -> Bool:
    """Records that lack octets, were not deliverable, or do not follow the one before (or begin the stream)."""
    end = records.stream_offset + _HEADER_BYTES + records.length
    expected = np.where(np.diff(streams_of(records), prepend=NONE) == 0, np.append(0, end[:-1]), 0)
    odd: Bool = (records.missing_bytes > 0) | (records.deliverable_at == NONE) | (records.last_seen_at == NONE)
    return np.asarray(odd | (records.stream_offset != expected))


def _spread(buffer: Buffer, segments: Segments, records: ChainedRecords) -> dict[int, bytes]:
    """The contents that do not lie in one segment, by row."""
    rows = np.flatnonzero(records.content_offset == NONE)
    if not rows.size:
        return {}
    _, part = contents_of(buffer, segments, records, rows)
    places = zip(part.rows.tolist(), part.at.tolist(), part.end.tolist(), strict=True)
    return {row: part.octets.text(at, end) for row, at, end in places}


@plain(frozen=True, slots=True)
class _Side:
    begin: int
    """Row of the first record that was opened."""
    finished: int
    places: list[int]
    contents: list[bytes]

    def octets(self) -> Octets:
        """What it said."""
        return Octets(b"".join(self.contents), list(accumulate(map(len, self.contents))))

    def chunks(self, at: Instants) -> Chunks:
        """When it came."""
        return Chunks([self.begin + place for place in self.places], at)


def _sides(begins: tuple[int, int], opened: tuple[Opened, Opened] | None) -> tuple[_Side, _Side] | None:
    return None if opened is None else (_Side(begins[0], *opened[0]), _Side(begins[1], *opened[1]))


def _rows(sessions: _Sessions, session: int) -> list[tuple[int, ...]]:
    sides = sessions.opened(session)
    said = None if sides is None else told(sides[0].octets(), sides[1].octets())
    if sides is None or said is None:
        return []
    client, server = sides
    at = sessions.at
    # The later of: the client's Finished sent, the server's deliverable.
    finished_at = max(
        at.last_seen_at[client.begin + client.finished], at.deliverable_at[server.begin + server.finished]
    )
    set_up = at.first_seen_at[sessions.begins[2 * session]], finished_at
    return rows_of(sessions.connection[session], said, client.chunks(at), server.chunks(at), set_up)
