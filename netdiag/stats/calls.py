"""Calls of several attempts (redirects, retries): what the user waited for, from the first attempt's beginning to the end of the last.

A table of exchanges alone would mix the hops of a redirect with the answers, and show a retried call as fast as its last attempt.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from netdiag.records.exchange import Exchange, Outcome
from netdiag.stats.durations import durations_ns

FIRST_TIMES = ("first_byte", "first_event", "first_token", "first_visible")


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeCall:
    """The attempts of one call in order; at least one."""

    attempts: tuple[Exchange, ...]

    @property
    def last(self) -> Exchange:
        """The attempt that decided."""
        return self.attempts[-1]

    @property
    def total_ns(self) -> int:
        """From the first attempt's beginning to the end of the last, with the pauses between."""
        return self.last.ended_at - self.attempts[0].started_at

    @property
    def first_round(self) -> bool:
        """Of a probe: it pays for cold caches everywhere and counts in nothing."""
        return self.last.trial == 0

    def durations_ns(self) -> dict[str, int]:
        """As of one exchange: ``total`` and the first-times from the call's beginning, every phase summed over the attempts."""
        found = Counter[str]()
        for attempt in self.attempts:
            found.update(durations_ns(attempt))
        late_ns = self.last.started_at - self.attempts[0].started_at
        of_last = durations_ns(self.last)
        firsts = {name: late_ns + of_last[name] for name in FIRST_TIMES if name in of_last}
        phases = {name: value for name, value in found.items() if name not in FIRST_TIMES}
        return {**phases, "total": self.total_ns, **firsts}


def whole_calls(exchanges: Iterable[Exchange]) -> list[WholeCall]:
    """The calls that these exchanges are attempts of, in the order in which they began; an exchange of no call is one of its own."""
    calls: dict[tuple[int | None, int], list[Exchange]] = defaultdict(list)
    for place, exchange in enumerate(exchanges):
        calls[(exchange.call_id, place if exchange.call_id is None else 0)].append(exchange)
    return [WholeCall(attempts=tuple(attempts)) for attempts in calls.values()]


def redirected(exchanges: Sequence[Exchange]) -> dict[int, str]:
    """By exchange id, why it is no answer to its call but a hop on the way: ``redirect 307``."""
    hops = (e for call in whole_calls(exchanges) for e in call.attempts[:-1] if e.outcome is Outcome.OK)
    return {hop.id: f"redirect {hop.status}" for hop in hops}


def call_quantities_ns(exchanges: Sequence[Exchange]) -> dict[int, dict[str, int]]:
    """By the id of the deciding exchange: ``call``, and the ``call_first_…`` times that it has, all from the call's beginning. Empty where
    every call has one attempt, since these are then what the exchange says."""
    calls = whole_calls(exchanges)
    if all(len(call.attempts) == 1 for call in calls):
        return {}
    return {call.last.id: _quantities(call) for call in calls}


def _quantities(call: WholeCall) -> dict[str, int]:
    durations = call.durations_ns()
    return {"call": call.total_ns, **{f"call_{name}": durations[name] for name in FIRST_TIMES if name in durations}}
