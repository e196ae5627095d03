"""Queries and their answers: one ``NameResolution`` per (client, resolver, id, question), with all its attempts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from netdiag.records.dns import NameResolution
from netdiag.records.endpoint import Endpoint

if TYPE_CHECKING:
    from netdiag.protocols.dns import DnsMessage, ResourceRecord

UNSPECIFIED = Endpoint("", 0)
"""Stands for an endpoint that the decoder does not know: an address is never made up."""

_DNS_PORT = 53
MDNS_PORT = 5353
LLMNR_PORT = 5355

# A stub resolver gives up on a question well before this; the same id and question later is a new one.
_FORGOTTEN_AFTER_NS = 30_000_000_000


@dataclass(frozen=True, slots=True)
class TimedMessage:
    """One message as it travelled."""

    message: DnsMessage
    source: Endpoint
    destination: Endpoint
    at: int
    """When it was captured (its last octet, over TCP: when that was deliverable); ns since the epoch."""
    packet: int | None
    transport: str = "udp"

    def between(self, client: Endpoint, resolver: Endpoint) -> TimedMessage:
        """The same message with its endpoints: a query goes to the resolver, an answer comes from it."""
        source, destination = (resolver, client) if self.message.response else (client, resolver)
        return replace(self, source=source, destination=destination)


@dataclass(slots=True)
class _Open:
    """A question whose attempts and answers are being gathered."""

    query: TimedMessage | None
    answer: TimedMessage | None = None
    attempts: int = 0
    answers: list[TimedMessage] = field(default_factory=list)
    last_at: int = 0


def pair(messages: Iterable[TimedMessage]) -> list[NameResolution]:
    """Resolutions in the order of their first message. mDNS and LLMNR are left out: they resolve no name of a server.

    ``messages`` are in the order of the capture. A repeated query with the same id, ports and question is another attempt; a search list
    shows as separate resolutions, since each asks another name.
    """
    rows: list[_Open] = []
    waiting: dict[tuple[object, ...], _Open] = {}
    for timed in messages:
        if _is_multicast(timed) or timed.message.opcode != 0:
            continue
        key = _key(timed)
        row = waiting.get(key)
        if timed.message.response:
            _answer(timed, key, row, rows, waiting)
        else:
            _query(timed, key, row, rows, waiting)
    return [_resolution(row) for row in rows]


def _is_multicast(timed: TimedMessage) -> bool:
    ports = {timed.source.port, timed.destination.port}
    return not ports.isdisjoint((MDNS_PORT, LLMNR_PORT)) and _DNS_PORT not in ports


def _key(timed: TimedMessage) -> tuple[object, ...]:
    message = timed.message
    client, resolver = (timed.destination, timed.source) if message.response else (timed.source, timed.destination)
    return timed.transport, client, resolver, message.id, message.name.lower(), message.type


def _query(
    timed: TimedMessage,
    key: tuple[object, ...],
    row: _Open | None,
    rows: list[_Open],
    waiting: dict[tuple[object, ...], _Open],
) -> None:
    if row is None or row.answer is not None or timed.at - row.last_at > _FORGOTTEN_AFTER_NS:
        row = waiting[key] = _Open(timed)
        rows.append(row)
    row.attempts += 1
    row.last_at = timed.at


def _answer(
    timed: TimedMessage,
    key: tuple[object, ...],
    row: _Open | None,
    rows: list[_Open],
    waiting: dict[tuple[object, ...], _Open],
) -> None:
    if row is None:
        row = waiting[key] = _Open(None)
        rows.append(row)
    row.last_at = timed.at
    if row.answer is None:
        row.answer = timed
    row.answers.append(timed)


def _resolution(row: _Open) -> NameResolution:
    either = row.query or row.answer
    assert either is not None
    message = either.message
    client, resolver = (either.destination, either.source) if message.response else (either.source, either.destination)
    answer = row.answer
    records = answer.message.answers if answer else ()
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
        duration_ns=answer.at - query_at if answer and query_at is not None else None,
        rcode=answer.message.rcode_name if answer else None,
        addresses=addresses,
        cname_chain=chain,
        attempts=max(1, row.attempts),
        ttl_s=ttl_s,
        truncated=bool(answer and answer.message.truncated),
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
