"""A capture's connections in parts of some 100,000 packets: columns of that size stay in the processor's cache, and parts do not need each other.

What the parts say is put together here: numbers over all of them as columns, records from the part that they belong to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence, Set
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


class Slot:
    """One part: where it lies, what it said, and the part itself when somebody asks for it."""

    def __init__(self, grouped: Grouped, first: int, last: int, context: Context) -> None:
        self._grouped, self._context = grouped, context
        self.first, self.last = first, last
        self._part: Part | None = None
        self._facts: PartFacts | None = None
        self.copied: bool | None = None

    @property
    def part(self) -> Part:
        """The part, made where it is not there."""
        if self._part is None:
            flows = self._grouped.flows(self.first, self.last, copied=self.copied)
            self._part = Part(flows, self.first, self._context)
        return self._part

    @property
    def facts(self) -> PartFacts:
        """What it said."""
        if self._facts is None:
            self._facts = self.part.facts()
        return self._facts

    def again(self, *, copied: bool) -> None:
        """Forget it all: the whole capture shows that it was looked at wrongly."""
        self._part = self._facts = None
        self.copied = copied


class Parts:
    """All connections of a capture over TCP."""

    def __init__(self, grouped: Grouped, context: Context) -> None:
        edges = _edges(grouped.starts, PART_PACKETS)
        self._slots = [Slot(grouped, a, b, context) for a, b in pairwise(edges)]
        self._first = np.array([slot.first for slot in self._slots], np.int64)
        if len(self._slots) > 1:
            self._agree_on_copies()
        self.connections: Rows[Connection] = Rows(len(grouped), self._connection)

    def _agree_on_copies(self) -> None:
        """Whether the capture holds most packets twice is for all of it to say; the first part says what is likely."""
        first, *others = self._slots
        likely = believed(first.facts.data, first.facts.data_copies)
        for slot in others:
            slot.copied = likely
        data, copies = (sum(getattr(s.facts, name) for s in self._slots) for name in ("data", "data_copies"))
        if believed(data, copies) != likely:
            for slot in self._slots:
                slot.again(copied=not likely)

    @property
    def opened(self) -> int:
        """TLS sessions that the keys opened."""
        return sum(slot.facts.opened for slot in self._slots)

    @property
    def anomalies(self) -> Iterator[Anomaly]:
        """What should not have been there."""
        return (anomaly for slot in self._slots for anomaly in slot.facts.anomalies)

    @property
    def name_messages(self) -> list[TimedMessage]:
        """DNS over TCP."""
        return [message for slot in self._slots for message in slot.facts.name_messages]

    def dials(self, addresses: Set[str], known: Set[str]) -> list[Dial]:
        """The connections to any of the addresses; ``known`` are those of the context."""
        if addresses == known:
            return [dial for slot in self._slots for dial in slot.facts.dials]
        return [dial for slot in self._slots for dial in slot.part.dials(addresses)]

    def exchanges(self, lookups: Mapping[int, Lookup], others: Sequence[Draft]) -> ExchangeRows:
        """In the order in which they began, with ``others`` (over UDP); records are made when asked for."""
        return _Numbered(self._slots, lookups, others).rows()

    def _connection(self, i: int) -> Connection:
        slot = self._slots[int(np.searchsorted(self._first, i, "right")) - 1]
        return slot.part.connections[i - slot.first]


class _Numbered:
    """All exchanges as rows of one table: of each part, then of ``others``."""

    def __init__(self, slots: Sequence[Slot], lookups: Mapping[int, Lookup], others: Sequence[Draft]) -> None:
        self._slots, self._lookups, self._others = slots, lookups, others
        tables = [slot.facts.exchanges for slot in slots]
        self._begins = np.cumsum([0, *(len(table) for table in tables)])
        whole = MarkTable.concat([*tables, marks_of_drafts(others)])
        names = {i: (one.query.at, one.answer.at) for i, one in lookups.items()}
        self._columns = whole.looked_up(names).measured()
        self._order: Int64 = np.lexsort((whole.position, whole.connection, self._columns.started_at))
        self._place = np.empty_like(self._order)
        self._place[self._order] = np.arange(len(self._order))
        self._openers = {
            begin + row: begin + opener
            for begin, slot in zip(self._begins.tolist(), slots, strict=False)
            for row, opener in slot.facts.openers.items()
        }

    def rows(self) -> ExchangeRows:
        """By id."""
        return ExchangeRows(self._columns.take(self._order), self._exchange)

    def _exchange(self, i: int) -> Exchange:
        row = int(self._order[i])
        opener = self._openers.get(row)
        return self._draft(row).exchange(i, None if opener is None else int(self._place[opener]))

    def _draft(self, row: int) -> Draft:
        number = int(np.searchsorted(self._begins, row, "right")) - 1
        inside = row - int(self._begins[number])
        if number == len(self._slots):
            return self._others[inside]
        slot = self._slots[number]
        return self._named(slot.part.draft(inside, slot.facts.exchanges))

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
