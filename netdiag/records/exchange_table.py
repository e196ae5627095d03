"""Questions about many exchanges. A table that has its answers in columns need not make a record of each to give them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

from netdiag.records.exchange import Exchange, Outcome


class MeasuredExchanges(Sequence[Exchange]):
    """A sequence of exchanges that answers some questions without making them."""

    __slots__ = ()

    @abstractmethod
    def places_of_slowest(self, most: int) -> list[int]:
        """Positions of the slowest so many, the slowest first, equal ones in order."""

    @abstractmethod
    def places_marked(self, chosen: Callable[[Outcome], bool]) -> list[int]:
        """Positions of those whose request may tell which attempt it is, and that ended in one of the chosen ways, in order."""

    @abstractmethod
    def those(self, places: Sequence[int]) -> list[Exchange]:
        """The exchanges at these places."""

    @abstractmethod
    def counts(self) -> dict[Outcome, int]:
        """How many ended how."""


def slowest(exchanges: Sequence[Exchange], most: int) -> list[Exchange]:
    """The slowest exchanges, the slowest first; equal ones in order."""
    if isinstance(exchanges, MeasuredExchanges):
        return exchanges.those(exchanges.places_of_slowest(most))
    return sorted(exchanges, key=lambda e: (-e.total_ns, e.id))[:most]


def outcome_counts(exchanges: Sequence[Exchange]) -> dict[Outcome, int]:
    """How many ended how; outcomes that none had are left out."""
    if isinstance(exchanges, MeasuredExchanges):
        return exchanges.counts()
    found: dict[Outcome, int] = {}
    for exchange in exchanges:
        found[exchange.outcome] = found.get(exchange.outcome, 0) + 1
    return found


def count_failed(exchanges: Sequence[Exchange]) -> int:
    """Those of which ``Exchange.failed`` holds."""
    return sum(count for outcome, count in outcome_counts(exchanges).items() if outcome.failed)
