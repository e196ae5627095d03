"""Truth beside an analysis: which exchange is which, and by how much each phase is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from netdiag.lab.builder.truth import TrueExchange, Truth
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange
from netdiag.records.timing import Phase, PhaseName

PHASES = tuple(str(name) for name in PhaseName)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseError:
    """One phase of one exchange. A phase is missing when only the truth has it, extra when only the analysis has it."""

    scenario: str
    seed: int
    exchange: int
    """Position in the truth."""
    phase: str
    """A phase's name, or ``total``."""
    true_ns: int | None
    found_ns: int | None
    lo_ns: int | None = None
    """The bounds that the analysis states; equal to ``found_ns`` where it says exact."""
    hi_ns: int | None = None
    method: str | None = None

    @property
    def error_ns(self) -> int | None:
        """Found minus true; None when either is missing."""
        return None if self.true_ns is None or self.found_ns is None else self.found_ns - self.true_ns

    @property
    def within_bounds(self) -> bool | None:
        """Whether the truth lies between the stated bounds; None where there is nothing to compare."""
        if self.true_ns is None or self.lo_ns is None or self.hi_ns is None:
            return None
        return self.lo_ns <= self.true_ns <= self.hi_ns


def match(truth: Truth, analysis: Analysis) -> list[tuple[TrueExchange, Exchange | None]]:
    """Each true exchange with the one that the analysis made of it: by the client's address, then stream or place on the connection."""
    left = [e for e in analysis.exchanges if e.connection_id is not None]
    return [(true, _take(true, left, analysis)) for true in truth.exchanges]


def _take(true: TrueExchange, left: list[Exchange], analysis: Analysis) -> Exchange | None:
    for exchange in left:
        assert exchange.connection_id is not None
        connection = analysis.connections[exchange.connection_id]
        if str(connection.client) != true.client or str(connection.server) != true.server:
            continue
        by_stream = true.stream_id is not None and exchange.stream_id is not None
        if exchange.stream_id == true.stream_id if by_stream else exchange.ordinal == true.request:
            left.remove(exchange)
            return exchange
    return None


def errors(truth: Truth, analysis: Analysis) -> Iterator[PhaseError]:
    """All phases of all true exchanges, and their totals; an exchange that was not found has every phase missing."""
    for index, (true, found) in enumerate(match(truth, analysis)):
        spans = {} if found is None else _by_name(found.phases)
        for name in PHASES:
            true_ns = true.phase_ns(name)
            mine = spans.get(name, [])
            if true_ns is None and not mine:
                continue
            yield PhaseError(
                scenario=truth.scenario,
                seed=truth.seed,
                exchange=index,
                phase=name,
                true_ns=true_ns,
                found_ns=sum(p.duration_ns for p in mine) if mine else None,
                lo_ns=sum(p.lo_ns for p in mine) if mine else None,
                hi_ns=sum(p.hi_ns for p in mine) if mine else None,
                method=" ".join(dict.fromkeys(str(p.method) for p in mine)) if mine else None,
            )
        yield PhaseError(
            scenario=truth.scenario,
            seed=truth.seed,
            exchange=index,
            phase="total",
            true_ns=true.total_ns,
            found_ns=found.total_ns if found is not None else None,
        )


def sum_is_total(analysis: Analysis) -> list[int]:
    """Ids of exchanges whose phases and ``unattributed_ns`` do not add up to the total (there should be none)."""
    return [e.id for e in analysis.exchanges if sum(p.duration_ns for p in e.phases) + e.unattributed_ns != e.total_ns]


def durations(truth: Truth) -> dict[str, int]:
    """Sum of each phase over all exchanges."""
    out: dict[str, int] = {}
    for exchange in truth.exchanges:
        for span in exchange.phases:
            out[span.name] = out.get(span.name, 0) + span.duration_ns
    return out


def found_durations(truth: Truth, analysis: Analysis) -> dict[str, int]:
    """The same as the analysis has it, over the exchanges that the truth knows."""
    out: dict[str, int] = {}
    for _, found in match(truth, analysis):
        for span in found.phases if found is not None else ():
            out[str(span.name)] = out.get(str(span.name), 0) + span.duration_ns
    return out


def _by_name(phases: Sequence[Phase]) -> dict[str, list[Phase]]:
    out: dict[str, list[Phase]] = {}
    for phase in phases:
        out.setdefault(str(phase.name), []).append(phase)
    return out
