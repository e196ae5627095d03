"""Connections of a capture, whole: from their packets to what they said. Records are made when asked for.

Connections that the grammar can judge by columns alone (``sealed``) cost nothing per connection; all others are heard one by one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

import numpy as np

from netdiag.analysis import names
from netdiag.analysis.dialogue import Dialogue
from netdiag.analysis.drafts import Draft, path_rtt_ns
from netdiag.analysis.exchange_columns import CODES, ExchangeColumns, arm_of, columns, columns_of_drafts
from netdiag.analysis.hearing import Ears
from netdiag.analysis.held_up import HeldUp
from netdiag.analysis.pairing import Dial, Lookup
from netdiag.analysis.requests import requests_of
from netdiag.analysis.rows import Rows
from netdiag.analysis.sealed import dialogue_of, exchanges, sealed
from netdiag.analysis.unopened import Unopened, UnopenedTurns, unopened_turns
from netdiag.analysis.unreachable import unreachable
from netdiag.analysis.vantage import vantage
from netdiag.protocols.dns_pairing import TimedMessage
from netdiag.protocols.tls.keylog import KeyLog
from netdiag.records.anomaly import Anomaly
from netdiag.records.connection import Connection
from netdiag.records.exchange import Outcome
from netdiag.wire.connections import track
from netdiag.wire.icmp import IcmpError
from netdiag.wire.measure import measure
from netdiag.wire.segments import segment
from netdiag.wire.tables import NONE, Buffer, Int64, Packets
from netdiag.wire.tls_records import chain

_NEXT_SYN_NS = 1_000_000_000


class Part:
    """Some connections, or all, with every packet of theirs. They are numbered in the order of their first packet."""

    def __init__(
        self, packets: Packets, buffer: Buffer, keylog: KeyLog | None, errors: Iterable[IcmpError] = ()
    ) -> None:
        """``errors``: what the network said about packets of these connections."""
        flows = track(packets, buffer)
        self._refusals = unreachable(flows, errors)
        segments = segment(flows)
        self.table = measure(flows, segments, buffer)
        records = chain(buffer, segments)
        self._ears = Ears(buffer, segments, records, self._server_port, keylog)
        candidates = self._ears.encrypted if keylog is None else np.zeros(len(self._ears.encrypted), np.bool_)
        self._sealed, self._chosen = sealed(buffer, segments, records, candidates, self.table.openings)
        self._row = {i: row for row, i in enumerate(self._sealed.connection.tolist()) if self._chosen[row]}
        self.dialogues = {
            i: self._ears.hear(i) for i in np.flatnonzero(self._ears.speaks).tolist() if i not in self._row
        }
        self.connections: Rows[Connection] = Rows(len(self.table), self._connection)
        self._lookups: Mapping[int, Lookup] = {}
        self._capture_ends_at = 0

    def __len__(self) -> int:
        return len(self.table)

    @property
    def opened(self) -> int:
        """TLS sessions that the keys opened."""
        return sum(1 for d in self.dialogues.values() if d.session is not None and d.session.decrypted)

    @property
    def anomalies(self) -> Iterator[Anomaly]:
        """What should not have been there. (Sealed connections have nothing of the kind.)"""
        for connection_id, dialogue in self.dialogues.items():
            for anomaly in dialogue.anomalies:
                yield dataclasses.replace(anomaly, connection_id=connection_id)

    def name_messages(self) -> list[TimedMessage]:
        """DNS over TCP."""
        spoken = ((i, d.dns_messages) for i, d in self.dialogues.items() if d.dns_messages)
        return [message for i, messages in spoken for message in names.in_stream(messages, self.connections[i])]

    def dials(self, addresses: Set[str]) -> list[Dial]:
        """The connections to any of the addresses, as attempts to reach them."""
        if not addresses:
            return []
        opened = np.flatnonzero(self.table.openings.syn_at != NONE).tolist()
        wanted = [i for i in opened if self.table.endpoints.of(i)[1][0] in addresses]
        return [d for i in wanted if (d := _dial(self.connections[i], self._said(i))) is not None]

    def _said(self, i: int) -> Dialogue | None:
        return dialogue_of(self.connections[i].tls) if i in self._row else self.dialogues.get(i)

    def _server_port(self, i: int) -> int:
        return self.table.endpoints.of(i)[1][1]

    def _connection(self, i: int) -> Connection:
        connection = self.table.record(i)
        located = vantage(connection.server_rtt_ns, connection.client_rtt_ns)
        dialogue = self._ears.hear(i) if i in self._row else self.dialogues.get(i)
        if dialogue is None:
            return dataclasses.replace(connection, vantage=located)
        return dataclasses.replace(
            connection,
            vantage=located,
            tls=dialogue.session,
            http_version=dialogue.http_version,
            application=dialogue.application,
            proxied=dialogue.proxied,
        )

    # -- exchanges -------------------------------------------------------------------------------------------------------------------

    def exchanges(
        self, lookups: Mapping[int, Lookup], capture_ends_at: int, others: Sequence[Draft] = ()
    ) -> PartExchanges:
        """All exchanges, once it is known which name each connection was looked up by; with those of ``others`` (over UDP)."""
        self._lookups, self._capture_ends_at = lookups, capture_ends_at
        told = _unopened(self.connections, self.dialogues)
        one_by_one = (i for i in range(len(self)) if i not in self._row)
        drafts = [draft for i in one_by_one for draft in self._drafts(i, self.dialogues.get(i), told.get(i, {}))]
        return PartExchanges(self, [*drafts, *others])

    def _drafts(self, i: int, dialogue: Dialogue | None, told: Mapping[int, UnopenedTurns]) -> list[Draft]:
        return requests_of(
            self.connections[i],
            dialogue,
            unopened=told,
            lookup=self._lookups.get(i),
            held_up=HeldUp.of(self.table.stalls, i),
            capture_ends_at=self._capture_ends_at,
            refusal=self._refusals.get(i),
        )

    def sealed_columns(self) -> tuple[ExchangeColumns, Int64, Int64]:
        """Columns of the sealed connections' exchanges, and the connection and the ordinal of each."""
        asked = {i: (one.query.at, one.answer.at) for i, one in self._lookups.items() if i in self._row}
        found = exchanges(self._sealed, self._chosen, self.table.openings, asked)
        table = columns(
            found.breakdown,
            arms=(arm_of(None, reused=False), arm_of(None, reused=True)),
            arm=np.minimum(found.ordinal, 1),
            outcome=np.full(len(found.row), CODES[Outcome.UNKNOWN], np.int64),
        )
        return table, self._sealed.connection[found.row], found.ordinal

    def sealed_draft(self, connection: int, ordinal: int) -> Draft:
        """One exchange of a sealed connection."""
        told = {0: self._sealed.told(self._row[connection])}
        return self._drafts(connection, self._said(connection), told)[ordinal]


class PartExchanges:
    """The exchanges of a part: columns of all of them, by connection and order, and each as a record."""

    def __init__(self, part: Part, drafts: list[Draft]) -> None:
        self._part = part
        self._drafts = drafts
        own = columns_of_drafts(drafts)
        told, connection, ordinal = part.sealed_columns()
        self.columns = ExchangeColumns.concat([own, told])
        before = np.array([0 if d.connection is None else d.connection.id for d in drafts], np.int64)
        self.connection: Int64 = np.concatenate((before, connection))
        self.position: Int64 = np.concatenate((np.arange(len(drafts)), ordinal))
        """Rises with the order of a connection's exchanges."""

    def draft(self, row: int) -> Draft:
        """What stands in a row of the columns."""
        if row < len(self._drafts):
            return self._drafts[row]
        return self._part.sealed_draft(int(self.connection[row]), int(self.position[row]))

    def openers(self) -> dict[int, int]:
        """Rows of exchanges that waited for another's set-up, and that one's row."""
        place = {id(draft): row for row, draft in enumerate(self._drafts)}
        return {row: place[id(d.opener)] for row, d in enumerate(self._drafts) if d.opener is not None}


def _dial(connection: Connection, dialogue: Dialogue | None) -> Dial | None:
    """The connection as an attempt to reach an address."""
    if connection.syn_at is None:
        return None
    failed_at = None
    if connection.close_reason == "refused":
        failed_at = connection.closed_at
    elif connection.syn_ack_at is None and not connection.sides.server.packets:
        # The client gives up at the earliest when the next SYN would be due, and waits twice as long for each.
        failed_at = connection.last_at + max(_NEXT_SYN_NS, connection.last_at - connection.syn_at)
    return Dial(
        connection_id=connection.id,
        client=connection.client.address,
        server=connection.server.address,
        syn_at=connection.syn_at,
        names=_names(connection, dialogue),
        failed_at=failed_at,
    )


def _names(connection: Connection, dialogue: Dialogue | None) -> frozenset[str]:
    """What the server was called: SNI and the host of the first request. A proxy's own name is in neither."""
    if dialogue is None or dialogue.proxied is not None:
        return frozenset()
    hosts = [leg.turns[0].authority for leg in dialogue.legs if leg.turns]
    if connection.tls is not None:
        hosts.append(connection.tls.sni)
    return frozenset(
        host.rpartition(":")[0].lower() or host.lower() if host.rpartition(":")[2].isdigit() else host.lower()
        for host in hosts
        if host
    )


def _unopened(connections: Rows[Connection], dialogues: Mapping[int, Dialogue]) -> dict[int, dict[int, UnopenedTurns]]:
    """Turns of all sessions without keys, by connection and leg; the grammar looks at all of them at once."""
    places: list[tuple[int, int]] = []
    sessions: list[Unopened] = []
    for connection_id, dialogue in dialogues.items():
        for place, leg in enumerate(dialogue.legs):
            if leg.keyless is not None:
                places.append((connection_id, place))
                rtt_ns = path_rtt_ns(connections[connection_id]) or 0
                sessions.append(Unopened(dialogue.session, *leg.keyless, rtt_ns))
    found: dict[int, dict[int, UnopenedTurns]] = {}
    for (connection_id, place), told in zip(places, unopened_turns(sessions), strict=True):
        found.setdefault(connection_id, {})[place] = told
    return found
