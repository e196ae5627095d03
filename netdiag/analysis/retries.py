"""Retries that a client library made by itself, told from its own marks in readable requests (retries section 3).

``x-stainless-retry-count`` (OpenAI's and Anthropic's libraries) numbers the attempts of a call from 0; an idempotency key is the same in all
attempts of one call. Without such a mark nothing is claimed: a program that asks again is not a library that tries again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from netdiag.protocols.retry_after import asked
from netdiag.protocols.retry_marks import COUNT, KEYS
from netdiag.records.call import Backoff, Call
from netdiag.records.exchange import Exchange, Outcome
from netdiag.records.exchange_table import MeasuredExchanges
from netdiag.units import NS_PER_MS, NS_PER_S

LIBRARY = "client library"
"""The policy's name where the attempts are numbered, so that a library must have made them."""
UNKNOWN = "unknown"
_GIVES_UP = (Outcome.OK, Outcome.UNKNOWN)
_LONGEST_WAIT_NS = 130 * NS_PER_S
"""Longer than any pause that these libraries obey (120 s)."""
_LATE_NS, _EARLY_NS = 250 * NS_PER_MS, 5 * NS_PER_MS
"""How much later and earlier than planned a retry may be on the wire."""
_MOST_FAILURES, _MOST_MARKED, _MOST_BETWEEN = 2_000, 20_000, 256
"""A capture of a large outage is not searched to its end: so many failures, among so many marked requests, and after each so many of these."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """What a request says of the attempt that it is."""

    count: int | None
    key: str | None


def inferred_calls(exchanges: Sequence[Exchange]) -> list[list[Exchange]]:
    """The attempts, in order, of each call that has several, in the order in which the calls began."""
    following: dict[int, Exchange] = {}
    taken: set[int] = set()
    failed = list(_failures(exchanges))
    marked = _marked(exchanges, failed[0].id) if failed else []
    for exchange in failed:
        again = _again(exchange, marked, taken)
        if again is not None:
            following[exchange.id] = again
            taken.add(again.id)
    return [_chain(exchange, following) for exchange in failed if exchange.id in following and exchange.id not in taken]


def _chain(first: Exchange, following: dict[int, Exchange]) -> list[Exchange]:
    attempts = [first]
    while (again := following.get(attempts[-1].id)) is not None:
        attempts.append(again)
    return attempts


def _failures(exchanges: Sequence[Exchange]) -> Iterator[Exchange]:
    """Those that a library may have tried again, as far as they can be read."""
    if isinstance(exchanges, MeasuredExchanges):
        places = exchanges.places_marked(lambda outcome: outcome not in _GIVES_UP)[:_MOST_FAILURES]
        yield from exchanges.those(places)
        return
    yield from [e for e in exchanges if e.outcome not in _GIVES_UP][:_MOST_FAILURES]


_Marked = tuple[Exchange, _Mark]


def _marked(exchanges: Sequence[Exchange], first_id: int) -> list[_Marked]:
    """The requests from this one on that say which attempt they are, in order: each record is made once, for however many failures."""
    rows: Iterable[Exchange] = exchanges[first_id:]
    if isinstance(exchanges, MeasuredExchanges):
        places = exchanges.places_marked(lambda _: True)
        rows = exchanges.those([place for place in places if place >= first_id][:_MOST_MARKED])
    return [(row, mark) for row in rows if (mark := _mark(row)) is not None]


def _again(exchange: Exchange, marked: Sequence[_Marked], taken: set[int]) -> Exchange | None:
    """The next attempt after this one; None when there is none, or nothing would tell."""
    mark = _mark(exchange)
    if mark is None:
        return None
    begin = bisect_right(marked, exchange.id, key=lambda one: one[0].id)
    for other, its in marked[begin : begin + _MOST_BETWEEN]:
        if other.started_at > exchange.ended_at + _LONGEST_WAIT_NS:
            return None
        if other.id not in taken and _same_request(exchange, other) and _continues(mark, its):
            return other
    return None


def _same_request(a: Exchange, b: Exchange) -> bool:
    return (a.method, a.authority, a.path) == (b.method, b.authority, b.path)


def _continues(mark: _Mark, other: _Mark) -> bool:
    """Keys decide where both have one; else the numbers."""
    if mark.key is not None and other.key is not None:
        return mark.key == other.key
    return mark.count is not None and other.count == mark.count + 1


def _mark(exchange: Exchange) -> _Mark | None:
    fields = {name.lower(): value for name, value in exchange.request_headers}
    text = fields.get(COUNT, "")
    count = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else None
    key = next((fields[name] for name in KEYS if fields.get(name)), None)
    return None if count is None and key is None else _Mark(count, key)


def call_of(id: int, attempts: Sequence[Exchange]) -> Call:
    """The call that these attempts are, marked as inferred."""
    first, last = attempts[0], attempts[-1]
    numbered = all((mark := _mark(attempt)) is not None and mark.count is not None for attempt in attempts)
    return Call(
        id=id,
        url=f"{first.scheme or 'https'}://{first.authority or first.server_name or ''}{first.path or ''}",
        attempts=tuple(attempt.id for attempt in attempts),
        backoff=tuple(_backoff(k, a, b) for k, (a, b) in enumerate(pairwise(attempts))),
        total_ns=last.ended_at - first.started_at,
        outcome=str(last.outcome),
        policy=LIBRARY if numbered else UNKNOWN,
        inferred=True,
    )


def _backoff(retries_done: int, before: Exchange, after: Exchange) -> Backoff:
    """The pause, and why it was that long as far as its length says."""
    waited = max(0, after.started_at - before.ended_at)
    fields = {name.lower(): value for name, value in before.response_headers}
    wish = asked(fields, wall_ns=before.ended_at)
    if wish is not None and wish.ns - _EARLY_NS <= waited <= wish.ns + _LATE_NS:
        return Backoff(ns=waited, cause=wish.cause, planned_ns=wish.ns)
    longest = min(NS_PER_S // 2 << min(retries_done, 10), 8 * NS_PER_S)
    if longest * 3 // 4 - _EARLY_NS <= waited <= longest + _LATE_NS:
        return Backoff(ns=waited, cause="computed")
    return Backoff(ns=waited, cause=UNKNOWN)


def with_inferred_calls(
    exchanges: Sequence[Exchange], known: Sequence[Call] = ()
) -> tuple[dict[int, Exchange], tuple[Call, ...]]:
    """The exchanges that change, by id, with their call and attempt; and all calls, numbered anew.

    ``known`` are the calls that a client was seen to make, none in a file. Those of one attempt that turn out to be attempts of one call
    are put together.
    """
    single = {call.attempts[0]: call for call in known if len(call.attempts) == 1}
    groups = [g for g in inferred_calls(exchanges) if not known or all(a.id in single for a in g)]
    if not groups:
        return {}, tuple(known)
    merged = {attempt.id for group in groups for attempt in group}
    calls = [call for call in known if merged.isdisjoint(call.attempts)]
    for group in groups:
        races = tuple(race for attempt in group if attempt.id in single for race in single[attempt.id].addresses)
        calls.append(replace(call_of(0, group), addresses=races))
    calls.sort(key=lambda call: call.attempts[0])
    numbered = tuple(replace(call, id=number) for number, call in enumerate(calls))
    places = {id: (call.id, k) for call in numbered for k, id in enumerate(call.attempts)}
    return {id: replace(exchanges[id], call_id=call, attempt=k) for id, (call, k) in places.items()}, numbered
