"""Connections of a capture, whole: from their packets to what they said. Records are made when asked for.

Connections that the grammar can judge by columns alone (``sealed``) cost nothing per connection, and regular HTTP (``brief``) little; all
others are heard one by one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Set
from typing import TYPE_CHECKING, Any

import numpy as np

from netdiag.analysis import names
from netdiag.analysis.dialogue import Dialogue
from netdiag.analysis.drafts import Draft, path_rtt_ns
from netdiag.analysis.exchange_columns import MarkTable, marks_of_drafts
from netdiag.analysis.hearing import Ears
from netdiag.analysis.held_up import HeldUp
from netdiag.analysis.pairing import Dial
from netdiag.analysis.requests import requests_of
from netdiag.analysis.rows import Rows
from netdiag.analysis.vantage import vantage
from netdiag.plain import plain
from netdiag.records.anomaly import Anomaly
from netdiag.records.connection import Connection
from netdiag.wire.flows import Flows
from netdiag.wire.icmp import IcmpError
from netdiag.wire.measure import measure
from netdiag.wire.segments import segment
from netdiag.wire.tables import NONE, Bool, Buffer, Int64, Segments
from netdiag.wire.tls_records import ChainedRecords, chain
from netdiag.wire.transmissions import transmissions

if TYPE_CHECKING:
    from netdiag.analysis.brief import BriefTurns
    from netdiag.analysis.multiplexed import Multiplexed
    from netdiag.analysis.unopened import UnopenedTurns
    from netdiag.protocols.dns.timed import TimedMessage
    from netdiag.protocols.tls.keylog import KeyLog

_NEXT_SYN_NS = 1_000_000_000


@plain(frozen=True, slots=True, kw_only=True)
class PartFacts:
    """What a whole capture's conclusions need of a part. Small, and can be sent to another process."""

    exchanges: MarkTable
    openers: dict[int, int]
    """Rows of exchanges that waited for another's set-up, and that one's row."""
    opened: int
    """TLS sessions that the keys opened."""
    anomalies: tuple[Anomaly, ...]
    name_messages: tuple[TimedMessage, ...]
    """DNS over TCP."""
    dials: tuple[Dial, ...]
    data: int
    data_copies: int
    """Packets with data, and those of them that were captured before (``wire.duplicates``)."""


@plain(frozen=True, slots=True, kw_only=True)
class Context:
    """What a part must know of the whole capture."""

    keylog: KeyLog | None
    capture_ends_at: int
    addresses: Set[str]
    """Those in DNS answers."""
    refusals: Mapping[int, IcmpError]
    """What the network said about connections, by id."""
    in_full: bool = False
    """Nothing is told in brief: everything is going to be asked for."""


class Part:
    """Some connections, with every packet of theirs, in the order of their ids, the first of which is ``first_id``."""

    def __init__(self, flows: Flows, first_id: int, context: Context) -> None:
        self._first_id, self._context = first_id, context
        segments = segment(flows)
        self._table = measure(flows, segments, flows.buffer)
        records = chain(flows.buffer, segments)
        self._ears = Ears(flows.buffer, segments, records, self._server_port, context.keylog, columns=True)
        candidates = self._ears.encrypted if context.keylog is None else np.zeros_like(self._ears.encrypted)
        self._row: dict[int, int] = {}
        """Of each connection that is sealed: its row in the table of those."""
        if candidates.any():
            from netdiag.analysis.sealed import sealed

            self._sealed, self._chosen = sealed(flows.buffer, segments, records, candidates, self._table.openings)
            rows = np.flatnonzero(self._chosen)
            self._row = dict(zip(self._sealed.connection[rows].tolist(), rows.tolist(), strict=True))
        self._given_up = self._closed_before_the_end()
        self._brief, self._told = self._in_brief(flows.buffer, segments, records)
        others = self._ears.speaks & ~self._told
        self._dialogues = {i: self._hear(i) for i in np.flatnonzero(others).tolist() if i not in self._row}
        self._asked: dict[int, Dialogue] = {}
        """Of connections told in brief: those that somebody asked for."""
        self.connections: Rows[Connection] = Rows(len(self._table), self._connection)
        """Numbered from 0 here; their ids are the whole capture's."""
        self._multiplexed = self._by_columns()
        self._silent = self._without_octets()
        self._own = self._drafts()
        self._own_of: dict[int, list[Draft]] = {}
        for draft in self._own:
            if draft.connection is not None:
                self._own_of.setdefault(draft.connection.id - first_id, []).append(draft)
        self._twice = transmissions(flows).twice if flows.count else None

    def __len__(self) -> int:
        return len(self._table)

    def forget(self) -> None:
        """Give its memory back at once; it cannot be used any more. (It refers to itself: only a garbage collection would notice.)"""
        self.__dict__.clear()

    def facts(self) -> PartFacts:
        """What is to be known of it without making records."""
        place = {id(draft): row for row, draft in enumerate(self._own)}
        tables, openers = (
            [marks_of_drafts(self._own)],
            {row: place[id(d.opener)] for row, d in enumerate(self._own) if d.opener is not None},
        )
        for many in self._multiplexed.values():
            first = sum(map(len, tables))
            tables.append(many.marks())
            openers.update((first + row, first) for row in many.waited(tables[-1]))
        if self._row:
            tables.append(self._of_sealed())
        if self._silent.any():
            from netdiag.analysis import silent

            ends_at = self._context.capture_ends_at
            tables.append(silent.exchanges(self._table, self._silent, self._first_id, ends_at))
        if self._brief is not None:
            from netdiag.analysis import brief

            first = sum(map(len, tables))
            tables.append(brief.exchanges(self._brief, self._table.openings, self._first_id))
            waited = brief.openers(self._brief, self._table.openings)
            openers.update((first + row, first + opener) for row, opener in waited.items())
        return PartFacts(
            exchanges=MarkTable.concat(tables),
            openers=openers,
            opened=self._opened(),
            anomalies=tuple(self._anomalies()),
            name_messages=tuple(self._name_messages()),
            dials=tuple(self.dials(self._context.addresses)),
            data=0 if self._twice is None else self._twice.data,
            data_copies=0 if self._twice is None else self._twice.data_copies,
        )

    def _opened(self) -> int:
        """TLS sessions that the keys opened."""
        in_brief = np.count_nonzero(self._told & self._ears.encrypted)
        heard = (d.session for d in self._dialogues.values())
        return int(in_brief) + sum(1 for session in heard if session is not None and session.decrypted)

    def _of_sealed(self) -> MarkTable:
        from netdiag.analysis.sealed import exchanges

        told = exchanges(self._sealed, self._chosen, self._table.openings)
        return dataclasses.replace(told, connection=told.connection + self._first_id)

    def draft(self, i: int, ordinal: int) -> Draft:
        """An exchange of connection ``i`` (from 0), the first of which is number 0."""
        if i in self._row:
            return self._requests(i, self._said(i), {0: self._sealed.told(self._row[i])})[ordinal]
        if i in self._multiplexed:
            return self._multiplexed[i].draft(ordinal)
        if i not in self._own_of:
            self._own_of[i] = self._requests(i, self._said(i), {})
        return self._own_of[i][ordinal]

    def dials(self, addresses: Set[str]) -> list[Dial]:
        """The connections to any of the addresses, as attempts to reach them."""
        if not addresses:
            return []
        opened = np.flatnonzero(self._table.openings.syn_at != NONE).tolist()
        wanted = [i for i in opened if self._table.endpoints.of(i)[1][0] in addresses]
        return [d for i in wanted if (d := _dial(self.connections[i], self._said(i))) is not None]

    def _anomalies(self) -> Iterator[Anomaly]:
        """What should not have been there. (Sealed connections have nothing of the kind.)"""
        for i, dialogue in self._dialogues.items():
            for anomaly in dialogue.anomalies:
                yield dataclasses.replace(anomaly, connection_id=self._first_id + i)

    def _name_messages(self) -> Iterator[TimedMessage]:
        for i, dialogue in self._dialogues.items():
            if dialogue.dns_messages:
                yield from names.in_stream(dialogue.dns_messages, self.connections[i])

    def _said(self, i: int) -> Dialogue | None:
        if i not in self._row:
            return self._heard(i)
        from netdiag.analysis.sealed import dialogue_of

        return dialogue_of(self.connections[i].tls)

    def _heard(self, i: int) -> Dialogue | None:
        if not self._is_told(i):
            return self._dialogues.get(i)
        if i not in self._asked:
            self._asked[i] = self._hear(i)
        return self._asked[i]

    def _is_told(self, i: int) -> bool:
        return i < len(self._told) and bool(self._told[i])

    def _closed_before_the_end(self) -> Bool:
        """Of each connection: its client closed before the server had sent all, and refused the rest. How its exchanges ended is not regular."""
        sides, fin_at = self._table.sides, self._client_fin_at
        closed = (fin_at != NONE) & (sides.rst_at[0::2] > fin_at)
        late: Bool = closed & (sides.last_payload_at[1::2] > fin_at)
        return late

    @property
    def _client_fin_at(self) -> Int64:
        return self._table.sides.fin_at[0::2]

    def _hear(self, i: int) -> Dialogue:
        """As columns, unless an answer came after its client had closed and refused it."""
        dialogue = self._ears.hear(i)
        leg = dialogue.only_columns
        if leg is None or leg.columns is None or not self._given_up[i]:
            return dialogue
        answered_at = leg.columns.server.deliverable_at[leg.columns.table.response_last]
        late = (answered_at > self._client_fin_at[i]).any()
        return self._ears.hear(i, columns=False) if late else dialogue

    def _in_brief(self, buffer: Buffer, segments: Segments, records: ChainedRecords) -> tuple[BriefTurns | None, Bool]:
        """The exchanges of regular HTTP connections, and of each connection that speaks whether it is one of them."""
        found: list[BriefTurns] = []
        wanted = np.full_like(self._ears.speaks, not self._context.in_full)
        clear = self._ears.speaks & ~self._ears.encrypted & wanted
        if clear.any():
            from netdiag.analysis.clear import clear_turns

            found.append(clear_turns(buffer, segments, clear))
        keylog = self._context.keylog
        sealed = self._ears.encrypted & wanted
        if keylog is not None and sealed.any():
            from netdiag.analysis.keyed import keyed_turns

            found.append(keyed_turns(buffer, segments, records, sealed, keylog))
        told = np.zeros_like(clear)
        if not found:
            return None, told
        table = type(found[0]).concat(found)
        told[table.connection] = True
        late = self._given_up[table.connection] & (table.response_last_at > self._client_fin_at[table.connection])
        told[table.connection[late]] = False
        return table.take(told[table.connection]), told

    def _server_port(self, i: int) -> int:
        return self._table.endpoints.server_port(i)

    def _connection(self, i: int) -> Connection:
        dialogue = self._ears.hear(i) if i in self._row else self._heard(i)
        said: dict[str, Any] = {}
        if dialogue is not None:
            said = {
                "tls": dialogue.session,
                "http_version": dialogue.http_version,
                "application": dialogue.application,
                "proxied": dialogue.proxied,
                "origin": dialogue.origin,
            }
        return self._table.record(i, id=self._first_id + i, vantage=vantage(*self._table.rtt_halves_ns(i)), **said)

    def _by_columns(self) -> dict[int, Multiplexed]:
        """The exchanges of connections whose turns are columns."""
        legs = {i: leg for i, dialogue in self._dialogues.items() if (leg := dialogue.only_columns) is not None}
        if not legs:
            return {}
        from netdiag.analysis.multiplexed import Multiplexed

        return {i: Multiplexed(self.connections[i], leg, self._held_up(i)) for i, leg in legs.items()}

    def _without_octets(self) -> Bool:
        """Of each connection: nothing was said on it, and the network said nothing about it."""
        silent = np.ones(len(self), np.bool_)
        silent[: len(self._ears.speaks)] = ~self._ears.speaks
        refused = [i - self._first_id for i in self._context.refusals if 0 <= i - self._first_id < len(self)]
        silent[refused] = False
        return silent

    def _drafts(self) -> list[Draft]:
        """The exchanges of all connections that are heard one by one, and of those that the network refused."""
        told = _unopened(self.connections, self._dialogues)
        columns = self._silent.copy()
        columns[: len(self._told)] |= self._told
        columns[[*self._row, *self._multiplexed]] = True
        one_by_one = np.flatnonzero(~columns).tolist()
        return [d for i in one_by_one for d in self._requests(i, self._dialogues.get(i), told.get(i, {}))]

    def _held_up(self, i: int) -> HeldUp:
        return HeldUp(self._table.stalls, i, self._table.receipts)

    def _requests(self, i: int, dialogue: Dialogue | None, told: Mapping[int, UnopenedTurns]) -> list[Draft]:
        return requests_of(
            self.connections[i],
            dialogue,
            unopened=told,
            lookup=None,
            held_up=self._held_up(i),
            capture_ends_at=self._context.capture_ends_at,
            refusal=self._context.refusals.get(self._first_id + i),
        )


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
        established_at=connection.syn_ack_at,
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
    places = [
        (connection_id, place)
        for connection_id, dialogue in dialogues.items()
        for place, leg in enumerate(dialogue.legs)
        if leg.keyless is not None
    ]
    if not places:
        return {}
    from netdiag.analysis.unopened import Unopened, unopened_turns

    sessions: list[Unopened] = []
    for connection_id, place in places:
        dialogue = dialogues[connection_id]
        rtt_ns = path_rtt_ns(connections[connection_id]) or 0
        sessions.append(Unopened(dialogue.session, *(dialogue.legs[place].keyless or ((), ())), rtt_ns))
    found: dict[int, dict[int, UnopenedTurns]] = {}
    for (connection_id, place), told in zip(places, unopened_turns(sessions), strict=True):
        found.setdefault(connection_id, {})[place] = told
    return found
