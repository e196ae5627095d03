"""A capture's connections in parts of some 100,000 packets: columns of that size stay in the processor's cache, and parts do not need each other.

What the parts say is put together here: numbers over all of them as columns, records from the part that they belong to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence, Set
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from netdiag.analysis.drafts import Draft
from netdiag.analysis.exchange_columns import Assembled, ExchangeRows, MarkTable, marks_of_drafts
from netdiag.analysis.marks import Milestone
from netdiag.analysis.pairing import Dial, Lookup
from netdiag.analysis.part import Context, Part, PartFacts
from netdiag.analysis.partition import Partition
from netdiag.analysis.rows import Rows
from netdiag.analysis.sharing import Runner, one_by_one
from netdiag.analysis.storage import Storage
from netdiag.collection import collect, collect_young
from netdiag.records.anomaly import Anomaly
from netdiag.records.connection import Connection
from netdiag.records.exchange import Exchange, Outcome
from netdiag.wire.connections import Grouped
from netdiag.wire.duplicates import believed
from netdiag.wire.icmp import IcmpError
from netdiag.wire.tables import Int32, Int64

if TYPE_CHECKING:
    from netdiag.protocols.dns.timed import TimedMessage

FEW = 8
"""So many records of a part that is not there are made one by one, before the whole part is made for them."""


class Recent:
    """The part that was made again because somebody asked: only the last one stays."""

    def __init__(self) -> None:
        self._last: Slot | None = None

    def used(self, slot: Slot) -> None:
        """Its part is about to be made."""
        before, self._last = self._last, slot
        if before is None or before is slot:
            return
        before.release()
        if before.partition is not slot.partition:
            before.partition.release()
        collect()


class Slot:
    """One part: where it lies, what it said, and the part itself when somebody asks for much of it."""

    def __init__(self, partition: Partition, first: int, last: int, context: Context, recent: Recent | None) -> None:
        """``recent``: where what is made again is counted; None where everything stays."""
        self.partition, self._context, self._recent = partition, context, recent
        self.first, self.last = partition.base + first, partition.base + last
        self._part: Part | None = None
        self._single: dict[int, Part] = {}
        self.facts: PartFacts | None = None
        self.table: Callable[[], MarkTable] = lambda: marks_of_drafts(())
        """The exchanges."""
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
        part = self.part
        facts = part.facts()
        if self._recent is not None:
            self._part = None
            part.forget()
            collect_young()
        return facts

    def release(self) -> None:
        """What can be made again need not stay."""
        self._part = None
        self._single.clear()

    def take(self, facts: PartFacts, storage: Storage) -> None:
        """Keep what it said."""
        self.table = _shelved(facts.exchanges, storage)
        self.facts = dataclasses.replace(facts, exchanges=marks_of_drafts(())) if storage.bounded else facts

    def connection(self, i: int) -> Connection:
        """A record by number."""
        part, first = self._with(i)
        return part.connections[i - first]

    def draft(self, connection: int, ordinal: int) -> Draft:
        """An exchange by the number of its connection, and its place among that one's."""
        part, first = self._with(connection)
        return part.draft(connection - first, ordinal)

    def _with(self, i: int) -> tuple[Part, int]:
        """A part that has the connection, and the number of its first."""
        if self._recent is not None:
            self._recent.used(self)
        if self._part is None and (i in self._single or len(self._single) < FEW):
            if i not in self._single:
                self._single[i] = self._made(i, i + 1)
            return self._single[i], i
        return self.part, self.first

    def _made(self, first: int, last: int) -> Part:
        copied, base = self.copied, self.partition.base
        if copied is None and self.facts is not None:  # a single connection is judged as its part was
            copied = believed(self.facts.data, self.facts.data_copies)
        return Part(self.partition.grouped.flows(first - base, last - base, copied=copied), first, self._context)

    def again(self, *, copied: bool) -> None:
        """Forget it all: the whole capture shows that it was looked at wrongly."""
        self._part = self.facts = None
        self.copied = copied


class Parts:
    """All connections of a capture over TCP, numbered in the order of their first packet. ``run`` may work on some at once.

    ``load`` makes the grouped packets of each partition; ``refusals`` says which of a partition's connections the network refused.
    """

    def __init__(
        self,
        load: Sequence[Callable[[], Grouped]],
        context: Context,
        refusals: Callable[[Grouped], Mapping[int, IcmpError]],
        storage: Storage,
        run: Runner = one_by_one,
    ) -> None:
        self._storage = storage
        recent = Recent() if storage.bounded else None
        self._slots: list[Slot] = []
        first_packets: list[Int64] = []
        base = 0
        for one in load:
            partition = Partition(one, base, keep=recent is None)
            refused = {base + i: error for i, error in refusals(partition.grouped).items()}
            own = dataclasses.replace(context, refusals=refused)
            slots = [Slot(partition, a, b, own, recent) for a, b in pairwise(partition.edges)]
            for slot in slots:
                slot.copied = None if len(load) == len(slots) == 1 else False
            if len(load) > 1:
                first_packets.append(partition.first_packets())
            self._hear(slots, run if recent is None else one_by_one)
            partition.release()
            self._slots += slots
            base += partition.count
        self._first = np.array([slot.first for slot in self._slots], np.int64)
        self._number = _numbers(first_packets) if len(load) > 1 else None
        self._agree_on_copies()
        self.connections: Rows[Connection] = Rows(base, self._connection, self.number_of)

    def __len__(self) -> int:
        return len(self.connections)

    def _hear(self, slots: Sequence[Slot], run: Runner) -> None:
        for slot, facts in zip(slots, run(Slot.hear, slots), strict=True):
            slot.take(facts, self._storage)
            self._storage.release()

    def _agree_on_copies(self) -> None:
        """Whether the capture holds most packets twice is for all of it to say; so far no part of several believed it."""
        data, copies = (sum(getattr(facts, name) for facts in self.facts) for name in ("data", "data_copies"))
        if len(self._slots) > 1 and believed(data, copies):
            for slot, following in zip(self._slots, [*self._slots[1:], None], strict=True):
                slot.again(copied=True)
                self._hear([slot], one_by_one)
                if following is None or following.partition is not slot.partition:
                    slot.partition.release()

    @property
    def facts(self) -> list[PartFacts]:
        """What each part said."""
        return [slot.facts for slot in self._slots if slot.facts is not None]

    @property
    def tables(self) -> list[Callable[[], MarkTable]]:
        """The exchanges of each part."""
        return [slot.table for slot in self._slots]

    @property
    def opened(self) -> int:
        """TLS sessions that the keys opened."""
        return sum(facts.opened for facts in self.facts)

    @property
    def anomalies(self) -> list[Anomaly]:
        """What should not have been there, by connection."""
        found = [anomaly for facts in self.facts for anomaly in facts.anomalies]
        if self._number is None:
            return found
        named = (dataclasses.replace(a, connection_id=self.id_of(a.connection_id)) for a in found)
        return sorted(named, key=lambda a: a.connection_id or 0)

    @property
    def name_messages(self) -> list[TimedMessage]:
        """DNS over TCP."""
        return [message for facts in self.facts for message in facts.name_messages]

    def dials(self, addresses: Set[str], known: Set[str]) -> list[Dial]:
        """The connections to any of the addresses; ``known`` are those of the context."""
        if addresses == known:
            found = [dial for facts in self.facts for dial in facts.dials]
        else:
            found = [dial for slot in self._slots for dial in slot.part.dials(addresses)]
        named = (dataclasses.replace(dial, connection_id=self.id_of(dial.connection_id)) for dial in found)
        return sorted(named, key=lambda dial: dial.connection_id)

    def exchanges(self, lookups: Mapping[int, Lookup], others: Sequence[Draft]) -> ExchangeRows:
        """In the order in which they began, with ``others`` (over UDP); records are made when asked for."""
        return _Numbered(self, lookups, others, self._storage).rows()

    def id_of(self, number: Any) -> Any:
        """Ids of connections that are numbered partition by partition."""
        return number if self._number is None or number is None else self._number[0][number].tolist()

    def draft(self, connection: int, ordinal: int) -> Draft:
        """An exchange by the id of its connection, and its place among that one's."""
        number = self.number_of(connection)
        draft = self._slot(number).draft(number, ordinal)
        if number != connection and draft.connection is not None:
            draft = dataclasses.replace(draft, connection=dataclasses.replace(draft.connection, id=connection))
        if draft.connection is not None:  # whoever asks for a request mostly asks for its connection next
            self.connections.keep(connection, draft.connection)
        return draft

    def number_of(self, id: int) -> int:
        """Of a connection, while they are counted partition by partition."""
        return id if self._number is None else int(self._number[1][id])

    def _connection(self, i: int) -> Connection:
        number = self.number_of(i)
        found = self._slot(number).connection(number)
        return found if number == i else dataclasses.replace(found, id=i)

    def _slot(self, number: int) -> Slot:
        return self._slots[int(np.searchsorted(self._first, number, "right")) - 1]


def _numbers(first_packets: list[Int64]) -> tuple[Int32, Int32]:
    """Id of each connection that is numbered partition by partition, and that number of each id. Empties the list."""
    first = np.concatenate(first_packets)
    first_packets.clear()
    number = np.argsort(first, kind="stable").astype(np.int32)
    ids = np.empty_like(number)
    ids[number] = np.arange(len(number), dtype=np.int32)
    return ids, number


def _shelved(table: MarkTable, storage: Storage) -> Callable[[], MarkTable]:
    """Makes the table again; where memory is dear its columns lie elsewhere meanwhile."""
    if not storage.bounded or not len(table):
        return lambda: table
    names = tuple(table.marks)
    load = storage.put(np.stack([table.connection, table.position, table.ended, *table.marks.values()]))
    arms, since_request = table.arms, table.since_request
    arm, outcome, status = table.arm.astype(np.int16), table.outcome.astype(np.int8), table.status.astype(np.int16)
    set_aside, marked = table.set_aside, table.marked

    def again() -> MarkTable:
        connection, position, ended, *marks = load()
        return MarkTable(
            connection=connection,
            position=position,
            marks=dict(zip(names, marks, strict=True)),
            ended=ended,
            arms=arms,
            arm=arm,
            outcome=outcome,
            set_aside=set_aside,
            status=status,
            marked=marked,
            since_request=since_request,
        )

    return again


class _Numbered:
    """All exchanges as rows of one table: of each part, then of ``others``."""

    def __init__(self, parts: Parts, lookups: Mapping[int, Lookup], others: Sequence[Draft], storage: Storage) -> None:
        self._parts, self._lookups, self._others = parts, lookups, others
        facts = parts.facts
        tables: list[Callable[[], MarkTable]] = [*parts.tables, lambda: marks_of_drafts(others)]
        begins = np.cumsum([0, *(len(table()) for table in tables)]).tolist()
        self._own = int(begins[-2])
        names = {i: (one.query.at, one.answer.at) for i, one in lookups.items()}
        given_up = [i for i, one in lookups.items() if one.superseded]
        self._connection, self._position = (storage.room(begins[-1], np.dtype(np.int64)) for _ in range(2))
        columns = Assembled(begins[-1], storage.room)
        for place, load in enumerate(tables):
            table = load()
            rows = slice(begins[place], begins[place + 1])
            ids = table.connection if place == len(facts) else np.asarray(parts.id_of(table.connection), np.int64)
            self._connection[rows], self._position[rows] = ids, table.position
            named = dataclasses.replace(table, connection=ids).looked_up(names).given_up(given_up)
            columns.add(named.measured(), rows)
            storage.release()
        whole = columns.table()
        kind = np.int32 if len(whole) < 1 << 31 else np.int64
        self._order = np.lexsort((self._position, self._connection, whole.started_at)).astype(kind)
        storage.release()
        self._columns = whole.ordered(self._order, storage.room, storage.release)
        self._openers = {
            begin + row: begin + opener
            for begin, one in zip(begins, facts, strict=False)
            for row, opener in one.openers.items()
        }
        self._place: NDArray[Any] | None = None
        self._release = storage.release

    def rows(self) -> ExchangeRows:
        """By id."""
        rows = ExchangeRows(self._columns, self._exchange, self._release)
        rows.near = self._near
        return rows

    def _near(self, i: int) -> int:
        row = int(self._order[i])
        return self._parts.number_of(int(self._connection[row])) if row < self._own else len(self._parts)

    def _exchange(self, i: int) -> Exchange:
        row = int(self._order[i])
        opener = self._openers.get(row)
        return self._draft(row).exchange(i, None if opener is None else self._id_of(opener))

    def _id_of(self, row: int) -> int:
        if self._place is None:
            self._place = np.empty_like(self._order)
            self._place[self._order] = np.arange(len(self._order))
        return int(self._place[row])

    def _draft(self, row: int) -> Draft:
        if row >= self._own:
            return self._others[row - self._own]
        return self._named(self._parts.draft(int(self._connection[row]), int(self._position[row])))

    def _named(self, draft: Draft) -> Draft:
        """With the lookup that its connection waited for."""
        lookup = None if draft.connection is None else self._lookups.get(draft.connection.id)
        if lookup is None or Milestone.SYN not in draft.marks:
            return draft
        named = {Milestone.DNS_QUERY: lookup.query, Milestone.DNS_ANSWER: lookup.answer}
        told = dataclasses.replace(draft, marks={**named, **draft.marks}, tried_at=lookup.tried_at)
        return dataclasses.replace(told, outcome=Outcome.SUPERSEDED) if lookup.superseded else told
