"""Queries and their answers: one ``NameResolution`` per (client, resolver, id, question), with all its attempts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from netdiag.protocols.dns.message import ResourceRecord
from netdiag.protocols.dns.timed import TimedMessage
from netdiag.protocols.dns.transport import PORT
from netdiag.records.dns import NameResolution

MDNS_PORT = 5353
LLMNR_PORT = 5355

# A stub resolver gives up on a question well before this; the same id and question later is a new one.
_FORGOTTEN_AFTER_NS = 30_000_000_000
_TRANSACTION = 4
"""So many parts of a key are the transaction: without the question."""


@dataclass(slots=True)
class _Open:
    """A question whose attempts and answers are being gathered."""

    query: TimedMessage | None
    answer: TimedMessage | None = None
    other_question: str | None = None
    """What the answer asks again, where that is something else."""
    attempts: int = 0
    answers: list[TimedMessage] = field(default_factory=list)
    last_at: int = 0


def pair(messages: Iterable[TimedMessage]) -> list[NameResolution]:
    """Resolutions in the order of their first message. mDNS and LLMNR are left out: they resolve no name of a server.

    ``messages`` are in the order of the capture. A repeated query with the same id, ports and question is another attempt; a search list
    shows as separate resolutions, since each asks another name. An answer that repeats no question, or one that nobody asked, belongs to
    the first query with its id and ports that is still open.
    """
    paired = _Pairing()
    for timed in messages:
        if not _is_multicast(timed) and timed.message.opcode == 0:
            paired.take(timed)
    return [_resolution(row) for row in paired.rows]


def _is_multicast(timed: TimedMessage) -> bool:
    ports = {timed.source.port, timed.destination.port}
    return not ports.isdisjoint((MDNS_PORT, LLMNR_PORT)) and PORT not in ports


def _key(timed: TimedMessage) -> tuple[object, ...]:
    message = timed.message
    client, resolver = (timed.destination, timed.source) if message.response else (timed.source, timed.destination)
    return timed.transport, client, resolver, message.id, message.name.lower(), message.type


class _Pairing:
    """Rows by question and, for answers that fit none, by the id of the transaction alone."""

    def __init__(self) -> None:
        self.rows: list[_Open] = []
        self._by_question: dict[tuple[object, ...], _Open] = {}
        self._unanswered: dict[tuple[object, ...], _Open] = {}
        """The first open query of a transaction."""

    def take(self, timed: TimedMessage) -> None:
        key = _key(timed)
        row = self._by_question.get(key)
        if timed.message.response:
            self._answer(timed, key, row)
        else:
            self._query(timed, key, row)

    def _query(self, timed: TimedMessage, key: tuple[object, ...], row: _Open | None) -> None:
        if row is None or row.answer is not None or timed.at - row.last_at > _FORGOTTEN_AFTER_NS:
            row = self._new(timed, key)
        row.attempts += 1
        row.last_at = timed.at
        transaction = key[:_TRANSACTION]
        if self._open(transaction, timed.at) is None:
            self._unanswered[transaction] = row

    def _answer(self, timed: TimedMessage, key: tuple[object, ...], row: _Open | None) -> None:
        if row is None:
            row = self._open(key[:_TRANSACTION], timed.at)
            if row is None:
                row = self._new(None, key)
            elif timed.message.questions and timed.message.readable and row.query and row.query.message.readable:
                row.other_question = f"{timed.message.name} {timed.message.type_name}"
        row.last_at = timed.at
        if row.answer is None:
            row.answer = timed
        row.answers.append(timed)

    def _new(self, query: TimedMessage | None, key: tuple[object, ...]) -> _Open:
        row = self._by_question[key] = _Open(query)
        self.rows.append(row)
        return row

    def _open(self, transaction: tuple[object, ...], at: int) -> _Open | None:
        row = self._unanswered.get(transaction)
        waits = row is not None and row.answer is None and at - row.last_at <= _FORGOTTEN_AFTER_NS
        return row if waits else None


def _resolution(row: _Open) -> NameResolution:
    either = row.query or row.answer
    assert either is not None
    message = either.message
    if not message.readable and row.answer is not None and row.answer.message.questions:
        message = row.answer.message
    answers = either.message.response
    client, resolver = (either.destination, either.source) if answers else (either.source, either.destination)
    answer = row.answer
    records = answer.message.answers if answer and row.other_question is None else ()
    chain, addresses, ttl_s = follow(message.name, records)
    query_at = row.query.at if row.query else None
    return NameResolution(
        name=message.name,
        type=message.type_name,
        resolver=resolver,
        client=client,
        transport=either.transport,
        query_at=query_at,
        query_packet=row.query.packet if row.query else None,
        response_at=answer.at if answer else None,
        response_packet=answer.packet if answer else None,
        duration_ns=answer.at - query_at if answer and query_at is not None and answer.at >= query_at else None,
        rcode=answer.message.rcode_name if answer else None,
        addresses=addresses,
        cname_chain=chain,
        attempts=max(1, row.attempts),
        ttl_s=ttl_s,
        truncated=bool(answer and answer.message.truncated),
        answered_question=row.other_question,
    )


def follow(name: str, records: Iterable[ResourceRecord]) -> tuple[tuple[str, ...], tuple[str, ...], int | None]:
    """(names of the CNAME chain from ``name`` on, addresses, smallest TTL of these). All addresses count, chained or not."""
    rows = list(records)
    aliases = {r.name.lower(): r for r in rows if r.target is not None}
    chain: list[str] = []
    at = name.lower()
    while (alias := aliases.pop(at, None)) is not None and alias.target is not None:
        chain.append(alias.target)
        at = alias.target.lower()
    holders = [r for r in rows if r.address is not None]
    addresses = tuple(dict.fromkeys(r.address for r in holders if r.address is not None))
    return tuple(chain), addresses, min((r.ttl_s for r in holders), default=None)
