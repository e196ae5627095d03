"""How accurate an analysis is on tier T0: scenarios × seeds, per phase the error against the truth, per cause where its milliseconds landed.

The analysis is given as a function (``netdiag.api.analyze``), since the lab stands below it.
"""

from __future__ import annotations

import io
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from netdiag.errors import UsageError
from netdiag.lab.builder.output import Recorded, record
from netdiag.lab.compare import PhaseError, durations, errors, found_durations, sum_is_total
from netdiag.lab.scenario import Scenario, knob, varied
from netdiag.records.analysis import Analysis

Analyse = Callable[[BinaryIO], Analysis]
DEFECTIVE = ("begins-late", "clock-step", "cut-frames", "lost-by-capture")
"""Bundled scenarios whose capture cannot tell the truth: what they ask of an analysis is honesty, not accuracy."""
TOLERANCE_NS = 100_000
"""Wire phases on T0."""
DOSES = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0)


@dataclass(frozen=True, slots=True)
class Run:
    """One scenario built and analysed."""

    scenario: Scenario
    recorded: Recorded
    analysis: Analysis


def run(scenario: Scenario, analyse: Analyse) -> Run:
    """Build, capture, analyse."""
    recorded = record(scenario)
    return Run(scenario, recorded, analyse(io.BytesIO(recorded.capture)))


# --- errors by phase -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseScore:
    """One phase over everything that was run. Errors are absolute values; None when nothing was compared."""

    phase: str
    n: int
    median_ns: int | None
    p95_ns: int | None
    max_ns: int | None
    missing: int
    """The truth has it, the analysis does not."""
    extra: int
    """The analysis has it, the truth does not."""
    bounded: int
    """How many were stated with bounds."""
    within_bounds: int


@dataclass(slots=True)
class Score:
    """Everything that was compared."""

    errors: list[PhaseError] = field(default_factory=list)
    runs: int = 0
    wrong_sums: list[tuple[str, int]] = field(default_factory=list)
    """Scenario and seed whose phases and unattributed time do not add up to a total."""

    def by_phase(self) -> list[PhaseScore]:
        """One row a phase, in the order of phases, the total last."""
        names = dict.fromkeys(e.phase for e in sorted(self.errors, key=_order))
        return [_phase_score(name, [e for e in self.errors if e.phase == name]) for name in names]

    def outliers(self, above_ns: int = TOLERANCE_NS) -> list[PhaseError]:
        """What is off by more, or missing, or extra; the worst first."""
        bad = [e for e in self.errors if e.error_ns is None or abs(e.error_ns) > above_ns]
        return sorted(bad, key=lambda e: -abs(e.error_ns) if e.error_ns is not None else -math.inf)

    @property
    def share_within_bounds(self) -> float | None:
        """Of the phases stated with bounds, the share whose truth lies inside; None without any."""
        told = [e.within_bounds for e in self.errors if e.within_bounds is not None]
        return sum(told) / len(told) if told else None


def score(scenarios: Iterable[Scenario], analyse: Analyse, *, seeds: Sequence[int] = (1,), vary: bool = True) -> Score:
    """Run all scenarios with all seeds. With ``vary``, every seed after the first also changes round trip, waits, sizes and segment
    size at random, so that no number is special."""
    total = Score()
    for scenario in scenarios:
        for place, seed in enumerate(seeds):
            chosen = with_seed(scenario, seed, vary=vary and place > 0)
            done = run(chosen, analyse)
            total.errors += errors(done.recorded.truth, done.analysis)
            total.runs += 1
            if sum_is_total(done.analysis):
                total.wrong_sums.append((chosen.name, seed))
    return total


def with_seed(scenario: Scenario, seed: int, *, vary: bool) -> Scenario:
    """The scenario under a seed; varied, its numbers are drawn from it too."""
    changes: dict[str, Any] = {"seed": seed}
    if vary:
        rng = random.Random(f"{scenario.name}/{seed}")
        changes["path.rtt_ms"] = round((knob(scenario, "path.rtt_ms") or 20.0) * rng.uniform(0.3, 2.0), 3)
        changes["answer.wait_ms"] = round((knob(scenario, "answer.wait_ms") or 10.0) * rng.uniform(0.2, 3.0), 3)
        changes["answer.gap_ms"] = round(rng.uniform(2.0, 60.0), 3)
        changes["tls.client.cpu_ms"] = round(rng.uniform(0.1, 5.0), 3)
        changes["tcp.server.mss"] = rng.choice((536, 1220, 1360, 1440, 1460))
        changes["server.record_bytes"] = rng.choice((512, 1400, 4096, 16384))
    return varied(scenario, changes)


def _order(error: PhaseError) -> int:
    from netdiag.lab.compare import PHASES

    return PHASES.index(error.phase) if error.phase in PHASES else len(PHASES)


def _phase_score(name: str, found: list[PhaseError]) -> PhaseScore:
    sizes = sorted(abs(e.error_ns) for e in found if e.error_ns is not None)
    told = [e.within_bounds for e in found if e.within_bounds is not None and e.method != "exact"]
    return PhaseScore(
        phase=name,
        n=len(sizes),
        median_ns=_quantile(sizes, 0.5),
        p95_ns=_quantile(sizes, 0.95),
        max_ns=sizes[-1] if sizes else None,
        missing=sum(e.found_ns is None for e in found),
        extra=sum(e.true_ns is None for e in found),
        bounded=len(told),
        within_bounds=sum(told),
    )


def _quantile(ordered: Sequence[int], share: float) -> int | None:
    """The smallest value with at least this share at or below it."""
    return ordered[math.ceil(share * len(ordered)) - 1] if ordered else None


# --- dose and response ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Dose:
    """One setting of a cause. Rises are against the setting 0, summed over all exchanges."""

    factor: float
    injected_ns: int
    """What the knob adds, once for each exchange that it concerns (by the truth)."""
    true_rise_ns: Mapping[str, int]
    found_rise_ns: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A cause swept from nothing to four times its size."""

    scenario: str
    cause: str
    cause_phase: str
    doses: tuple[Dose, ...]

    @property
    def share_in_right_phase(self) -> float | None:
        """Of all milliseconds that the truth gained, phase by phase, the share that the analysis gained in the same phase."""
        gained = right = 0
        for dose in self.doses:
            for phase, true_ns in dose.true_rise_ns.items():
                if true_ns > 0:
                    gained += true_ns
                    right += max(0, min(true_ns, dose.found_rise_ns.get(phase, 0)))
        return right / gained if gained else None

    @property
    def is_monotone(self) -> bool:
        """More of the cause never makes the reported phase shorter."""
        rises = [dose.found_rise_ns.get(self.cause_phase, 0) for dose in self.doses]
        return rises == sorted(rises)

    @property
    def strays_ns(self) -> int:
        """The most by which any phase rose or fell otherwise than in truth, over all doses."""
        return max(
            abs(dose.found_rise_ns.get(phase, 0) - dose.true_rise_ns.get(phase, 0))
            for dose in self.doses
            for phase in {*dose.true_rise_ns, *dose.found_rise_ns, self.cause_phase}
        )


def respond(scenario: Scenario, analyse: Analyse, *, doses: Sequence[float] = DOSES) -> Response:
    """Sweep the cause that a scenario names. Raises UsageError when it names none."""
    if scenario.cause is None or scenario.cause_phase is None:
        raise UsageError(f"scenario {scenario.name!r} names no cause to sweep")
    full = float(knob(scenario, scenario.cause) or 0.0)
    without = run(varied(scenario, {scenario.cause: 0.0}), analyse)
    true_base = durations(without.recorded.truth)
    found_base = found_durations(without.recorded.truth, without.analysis)
    out = []
    for factor in doses:
        done = run(varied(scenario, {scenario.cause: full * factor}), analyse)
        out.append(
            Dose(
                factor=factor,
                injected_ns=round(full * factor * 1e6),
                true_rise_ns=_rise(durations(done.recorded.truth), true_base),
                found_rise_ns=_rise(found_durations(done.recorded.truth, done.analysis), found_base),
            )
        )
    return Response(scenario=scenario.name, cause=scenario.cause, cause_phase=scenario.cause_phase, doses=tuple(out))


def _rise(now: Mapping[str, int], base: Mapping[str, int]) -> dict[str, int]:
    return {name: now.get(name, 0) - base.get(name, 0) for name in dict.fromkeys((*now, *base))}


def causes(scenarios: Iterable[Scenario]) -> Iterator[Scenario]:
    """Those that name a cause."""
    return (scenario for scenario in scenarios if scenario.cause is not None)
