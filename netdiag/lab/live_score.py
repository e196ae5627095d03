"""How accurate an analysis is on tiers T1 and T2: real servers, real kernels, a real client.

The client is given as a function (a probe that returns netdiag's JSON document), since the lab stands below it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from netdiag.errors import UsageError
from netdiag.lab.compare import PhaseError
from netdiag.lab.live import LiveTruth, Target, on_tier
from netdiag.lab.scenario import Scenario, bundled, bundled_names, knob, varied
from netdiag.lab.score import DOSES, Dose, Response, Score, with_seed

Document = Mapping[str, Any]
Probe = Callable[[Target], Document]
WITHIN_NS = {"T0": 100_000, "T1": 1_000_000, "T2": 1_500_000}
"""What is asked of wire phases on each tier."""
APPLICATION_WITHIN_NS = 3_000_000
"""What is asked of phases by the application's clock."""


def scenarios_of(tier: str) -> list[Scenario]:
    """The bundled scenarios that say they can be run there."""
    return [scenario for scenario in map(bundled, bundled_names()) if tier in scenario.tiers]


def run_live(tier: str, scenario: Scenario, probe: Probe) -> tuple[Document, list[PhaseError]]:
    """Serve, probe, compare: netdiag's document, and every phase that the truth determines."""
    document, truths = on_tier(tier, scenario, probe)
    return document, list(live_errors(scenario, document, truths))


def score_live(
    tier: str,
    scenarios: Sequence[Scenario],
    probe: Probe,
    *,
    seeds: Sequence[int] = (1,),
    vary: bool = True,
    note: Callable[[str], None] | None = None,
) -> Score:
    """As ``score.score``, with real servers. ``note`` is told the name of each scenario as it begins."""
    total = Score()
    for scenario in scenarios:
        for place, seed in enumerate(seeds):
            if note is not None:
                note(scenario.name)
            chosen = with_seed(scenario, seed, vary=vary and place > 0)
            document, errors = run_live(tier, chosen, probe)
            total.errors += errors
            total.runs += 1
            if wrong_sums(document):
                total.wrong_sums.append((chosen.name, seed))
    return total


def live_errors(scenario: Scenario, document: Document, truths: Sequence[LiveTruth]) -> Iterator[PhaseError]:
    """Each phase that the truth determines beside what the document has; an exchange that it lacks has every phase missing."""
    found = dict(_by_place(document))
    for index, truth in enumerate(truths):
        phases = _by_name(found.get((truth.served.client, truth.served.request)))
        for name, true_ns in truth.phases().items():
            mine = phases.get(name, [])
            yield PhaseError(
                scenario=scenario.name,
                seed=scenario.seed,
                exchange=index,
                phase=name,
                true_ns=true_ns,
                found_ns=sum(p["duration_ns"] for p in mine) if mine else None,
                lo_ns=sum(p["lo_ns"] for p in mine) if mine else None,
                hi_ns=sum(p["hi_ns"] for p in mine) if mine else None,
                method=" ".join(dict.fromkeys(str(p["method"]) for p in mine)) if mine else None,
            )


def wrong_sums(document: Document) -> list[int]:
    """Ids of exchanges whose phases and unattributed time do not add up to the total (there should be none)."""
    return [
        exchange["id"]
        for exchange in document["exchanges"]
        if sum(p["duration_ns"] for p in exchange["phases"]) + exchange["unattributed_ns"] != exchange["total_ns"]
    ]


def _by_place(document: Document) -> Iterator[tuple[tuple[str, int], Document]]:
    for exchange in document["exchanges"]:
        if exchange["connection_id"] is None:
            continue
        client = document["connections"][exchange["connection_id"]]["client"]
        host = f"[{client['address']}]" if ":" in client["address"] else client["address"]
        yield (f"{host}:{client['port']}", exchange["ordinal"]), exchange


def _by_name(exchange: Document | None) -> dict[str, list[Document]]:
    out: dict[str, list[Document]] = {}
    for phase in exchange["phases"] if exchange is not None else ():
        out.setdefault(phase["name"], []).append(phase)
    return out


# --- dose and response ---------------------------------------------------------------------------------------------


def respond_live(tier: str, scenario: Scenario, probe: Probe, *, doses: Sequence[float] = DOSES) -> Response:
    """Sweep the cause that a scenario names, by the medians of the probe's calls. The truth's rise is the median of what server and link
    really did. Raises UsageError when the scenario names no cause."""
    if scenario.cause is None or scenario.cause_phase is None:
        raise UsageError(f"scenario {scenario.name!r} names no cause to sweep")
    full = float(knob(scenario, scenario.cause) or 0.0)
    true_base, found_base = _medians(tier, varied(scenario, {scenario.cause: 0.0}), probe)
    out = []
    for factor in doses:
        true, found = _medians(tier, varied(scenario, {scenario.cause: full * factor}), probe)
        out.append(
            Dose(
                factor=factor,
                injected_ns=round(full * factor * 1e6),
                true_rise_ns={name: true[name] - true_base.get(name, 0) for name in true},
                found_rise_ns={name: found[name] - found_base.get(name, 0) for name in found if name in true},
            )
        )
    return Response(scenario=scenario.name, cause=scenario.cause, cause_phase=scenario.cause_phase, doses=tuple(out))


def _medians(tier: str, scenario: Scenario, probe: Probe) -> tuple[dict[str, int], dict[str, int]]:
    """By phase: what really happened, and what was said of it."""
    _, errors = run_live(tier, scenario, probe)
    both = [e for e in errors if e.true_ns is not None and e.found_ns is not None]
    names = dict.fromkeys(e.phase for e in both)
    true = {name: round(statistics.median(e.true_ns or 0 for e in both if e.phase == name)) for name in names}
    found = {name: round(statistics.median(e.found_ns or 0 for e in both if e.phase == name)) for name in names}
    return true, found
