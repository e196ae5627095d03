"""A capture's connections in parts of some 100,000 packets: columns of that size stay in the processor's cache, and parts do not need each other.

What the parts say is put together here: numbers over all of them as columns, records from the part that they belong to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import pairwise

import numpy as np

from netdiag.analysis.drafts import Draft
from netdiag.analysis.exchange_columns import ExchangeRows, MarkTable, marks_of_drafts
from netdiag.analysis.marks import Milestone
from netdiag.analysis.pairing import Dial, Lookup
from netdiag.analysis.part import Context, Part, PartFacts
from netdiag.analysis.rows import Rows
from netdiag.protocols.dns_pairing import TimedMessage
from netdiag.records.anomaly import Anomaly
from netdiag.records.connection import Connection
from netdiag.records.exchange import Exchange
from netdiag.wire.connections import Grouped
from netdiag.wire.duplicates import believed
from netdiag.wire.tables import Int64

PART_PACKETS = 1 << 17


FEW = 8
"""So many records of a part that is not there are made one by one, before the whole part is made for them."""


class Slot:
    """One part: where it lies, what it said, and the part itself when somebody asks for much of it."""

    def __init__(self, grouped: Grouped, first: int, last: int, context: Context) -> None:
        self._grouped, self._context = grouped, context
        self.first, self.last = first, last
        self._part: Part | None = None
        self._single: dict[int, Part] = {}
        self.facts: PartFacts | None = None
        self.copied: bool | None = None

    @property
    def part(self) -> Part:
        """The whole part, made where it is not there."""
        if self._part is None:
            self._part = self._made(self.first, self.last)
            self._single.clear()
        return self._part

    def hear(self) -> PartFacts:
        """What it says."""
        return self.part.facts()

    def connection(self, i: int) -> Connection:
        """A record by id."""
        part, first = self._with(i)
        return part.connections[i - first]

    def draft(self, connection: int, ordinal: int) -> Draft:
        """An exchange by the id of its connection, and its place among that one's."""
        part, first = self._with(connection)
        return part.draft(connection - first, ordinal)

    def _with(self, i: int) -> tuple[Part, int]:
        """A part that has the connection, and its first id."""
        if self._part is None and (i in self._single or len(self._single) < FEW):
            if i not in self._single:
                self._single[i] = self._made(i, i + 1)
            return self._single[i], i
        return self.part, self.first

    def _made(self, first: int, last: int) -> Part:
        copied = self.copied
        if copied is None and self.facts is not None:  # a single connection is judged as its part was
            copied = believed(self.facts.data, self.facts.data_copies)
        return Part(self._grouped.flows(first, last, copied=copied), first, self._context)

    def again(self, *, copied: bool) -> None:
        """Forget it all: the whole capture shows that it was looked at wrongly."""
        self._part = self.facts = None
        self.copied = copied


Runner = Callable[[Callable[[Slot], PartFacts], Sequence[Slot]], Sequence[PartFacts | None]]
"""Applies a function to all slots, perhaps in several processes; None stands for what it left out."""


class Parts:
    """All connections of a capture over TCP. ``run`` may spread the work over processes."""

    def __init__(self, grouped: Grouped, context: Context, run: Runner | None = None) -> None:
        edges = _edges(grouped.starts, PART_PACKETS)
        self._slots = [Slot(grouped, a, b, context) for a, b in pairwise(edges)]
        self._first = np.array([slot.first for slot in self._slots], np.int64)
        if len(self._slots) > 1:
            for slot in self._slots:
                slot.copied = False
        self._hear(self._slots, run)
        if len(self._slots) > 1:
            self._agree_on_copies(run)
        self.connections: Rows[Connection] = Rows(len(grouped), self._connection)

    def _hear(self, slots: Sequence[Slot], run: Runner | None) -> None:
        told = [None] * len(slots) if run is None or len(slots) < 2 else run(Slot.hear, slots)
        for slot, facts in zip(slots, told, strict=True):
            slot.facts = facts or slot.hear()

    def _agree_on_copies(self, run: Runner | None) -> None:
        """Whether the capture holds most packets twice is for all of it to say; so far no part believed it."""
        data, copies = (sum(getattr(facts, name) for facts in self.facts) for name in ("data", "data_copies"))
        if believed(data, copies):
            for slot in self._slots:
                slot.again(copied=True)
            self._hear(self._slots, run)

    @property
    def facts(self) -> list[PartFacts]:
        """What each part said."""
        return [slot.facts for slot in self._slots if slot.facts is not None]

    @property
    def opened(self) -> int:
        """TLS sessions that the keys opened."""
        return sum(facts.opened for facts in self.facts)

    @property
    def anomalies(self) -> Iterator[Anomaly]:
        """What should not have been there."""
        return (anomaly for facts in self.facts for anomaly in facts.anomalies)

    @property
    def name_messages(self) -> list[TimedMessage]:
        """DNS over TCP."""
        return [message for facts in self.facts for message in facts.name_messages]

    def dials(self, addresses: Set[str], known: Set[str]) -> list[Dial]:
        """The connections to any of the addresses; ``known`` are those of the context."""
        if addresses == known:
            return [dial for facts in self.facts for dial in facts.dials]
        return [dial for slot in self._slots for dial in slot.part.dials(addresses)]

    def exchanges(self, lookups: Mapping[int, Lookup], others: Sequence[Draft]) -> ExchangeRows:
        """In the order in which they began, with ``others`` (over UDP); records are made when asked for."""
        return _Numbered(self, lookups, others).rows()

    def slot(self, connection: int) -> Slot:
        """The one that has a connection."""
        return self._slots[int(np.searchsorted(self._first, connection, "right")) - 1]

    def _connection(self, i: int) -> Connection:
        return self.slot(i).connection(i)


class _Numbered:
    """All exchanges as rows of one table: of each part, then of ``others``."""

    def __init__(self, parts: Parts, lookups: Mapping[int, Lookup], others: Sequence[Draft]) -> None:
        self._parts, self._lookups, self._others = parts, lookups, others
        tables = [facts.exchanges for facts in parts.facts]
        begins = np.cumsum([0, *(len(table) for table in tables)]).tolist()
        self._own = int(begins[-1])
        whole = MarkTable.concat([*tables, marks_of_drafts(others)])
        names = {i: (one.query.at, one.answer.at) for i, one in lookups.items()}
        self._columns = whole.looked_up(names).measured()
        self._connection, self._position = whole.connection, whole.position
        self._order: Int64 = np.lexsort((whole.position, whole.connection, self._columns.started_at))
        self._place = np.empty_like(self._order)
        self._place[self._order] = np.arange(len(self._order))
        self._openers = {
            begin + row: begin + opener
            for begin, facts in zip(begins, parts.facts, strict=False)
            for row, opener in facts.openers.items()
        }

    def rows(self) -> ExchangeRows:
        """By id."""
        return ExchangeRows(self._columns.take(self._order), self._exchange)

    def _exchange(self, i: int) -> Exchange:
        row = int(self._order[i])
        opener = self._openers.get(row)
        return self._draft(row).exchange(i, None if opener is None else int(self._place[opener]))

    def _draft(self, row: int) -> Draft:
        if row >= self._own:
            return self._others[row - self._own]
        connection = int(self._connection[row])
        return self._named(self._parts.slot(connection).draft(connection, int(self._position[row])))

    def _named(self, draft: Draft) -> Draft:
        """With the lookup that its connection waited for."""
        lookup = None if draft.connection is None else self._lookups.get(draft.connection.id)
        if lookup is None or Milestone.SYN not in draft.marks:
            return draft
        named = {Milestone.DNS_QUERY: lookup.query, Milestone.DNS_ANSWER: lookup.answer}
        return dataclasses.replace(draft, marks={**named, **draft.marks})


def _edges(starts: Int64, part_packets: int) -> list[int]:
    """Connections at which parts begin, and their number at the end; a part has at least one connection."""
    edges, last = [0], len(starts) - 1
    while edges[-1] < last:
        wanted = int(starts[edges[-1]]) + part_packets
        edges.append(max(edges[-1] + 1, min(last, int(np.searchsorted(starts, wanted, "right")) - 1)))
    return edges
