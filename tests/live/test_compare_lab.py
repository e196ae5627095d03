"""The statistics on real requests: two equal arms raise few alarms, an injected difference is found at the promised number of pairs."""

from __future__ import annotations

import statistics as st

import pytest

from netdiag import probe
from netdiag.lab import Behaviour
from netdiag.probe.plan import ProbeConfig
from netdiag.stats.arms import compare_samples
from netdiag.stats.comparison import pairs_needed
from netdiag.stats.samples import Sample, by_arm, samples_of
from tests.support.lab import StartLab
from tests.support.probing import NS_PER_MS, config_for

pytestmark = pytest.mark.xdist_group("timing")
INJECTED_MS = 5.0


def alarm(a: list[Sample], b: list[Sample], quantity: str = "total") -> bool:
    """Whether the 95 % interval of the difference leaves 0 out."""
    (found,) = [c for c in compare_samples(a, b, margin_ns=NS_PER_MS) if c.quantity == quantity]
    assert found.lo_ns is not None
    assert found.hi_ns is not None
    return found.lo_ns > 0 or found.hi_ns < 0


def equal_arms(start_lab: StartLab, pairs: int, seed: int) -> tuple[list[Sample], list[Sample]]:
    """The same way to call under two names."""
    server = start_lab(Behaviour(wait_ms=2))
    analysis = probe(config_for(server, arms=("h1+warm", "h1+warm+shared"), trials=pairs, seed=seed))
    a, b = by_arm(samples_of(analysis)).values()
    return a, b


def blocks_with_alarm(a: list[Sample], b: list[Sample], size: int) -> list[bool]:
    """One answer for each block of so many pairs."""
    rounds = sorted({s.trial for s in a} & {s.trial for s in b} - {None})  # type: ignore[type-var]
    chunks = [set(rounds[i : i + size]) for i in range(0, len(rounds) - size + 1, size)]
    return [alarm([s for s in a if s.trial in c], [s for s in b if s.trial in c]) for c in chunks]


def test_equal_arms_raise_few_alarms(start_lab: StartLab) -> None:
    """12 blocks of 8 pairs; 4 or more false alarms in 12 have a probability of 0.2 % when each has 5 %."""
    a, b = equal_arms(start_lab, 96, seed=11)
    found = blocks_with_alarm(a, b, 8)
    assert len(found) == 12
    assert sum(found) <= 3


@pytest.mark.slow
def test_equal_arms_at_scale(start_lab: StartLab) -> None:
    """200 blocks: at most 5 % is 10; 19 or more have a probability below 0.5 %."""
    found: list[bool] = []
    for seed in range(4):
        found += blocks_with_alarm(*equal_arms(start_lab, 400, seed), 8)
    assert len(found) == 200
    assert sum(found) <= 18, f"{sum(found)} of 200"


def injected(start_lab: StartLab, pairs: int, seed: int) -> tuple[list[Sample], list[Sample]]:
    """The same server twice, the second one 5 ms slower."""
    urls = tuple(start_lab(Behaviour(wait_ms=ms), tls=False).url + "/v1/models" for ms in (15.0, 15.0 + INJECTED_MS))
    analysis = probe(ProbeConfig(urls=urls, arms=("h1+warm",), trials=pairs, capture="none", seed=seed))
    arms = by_arm(samples_of(analysis))
    quick, slow = (next(rows for name, rows in arms.items() if url.split("/")[2] in name) for url in urls)
    return quick, slow


def promised(quick: list[Sample], slow: list[Sample]) -> int:
    """Pairs to detect the injected difference at the spread of a pilot, as the report would say."""
    by_trial = {s.trial: s.durations_ns["wait"] for s in quick}
    differences = [s.durations_ns["wait"] - by_trial[s.trial] for s in slow if s.trial in by_trial]
    more = pairs_needed(st.stdev(differences), INJECTED_MS * NS_PER_MS, NS_PER_MS, len(differences))
    assert more is not None
    return min(60, max(8, len(differences) + more))


@pytest.mark.parametrize("runs", [pytest.param(3, id="3 runs"), pytest.param(20, id="20 runs", marks=pytest.mark.slow)])
def test_injected_milliseconds_are_found_at_the_promised_n(start_lab: StartLab, runs: int) -> None:
    """80 % power: fewer than 2 of 3 have a probability of 10 % at exactly that power, and far less at the n of a quiet machine."""
    n = promised(*injected(start_lab, 12, seed=1))
    found = []
    for seed in range(runs):
        quick, slow = injected(start_lab, n, seed)
        found.append(alarm(quick, slow, "wait"))
        (row,) = [c for c in compare_samples(quick, slow) if c.quantity == "wait"]
        assert row.estimate_ns is not None
        assert abs(row.estimate_ns - INJECTED_MS * NS_PER_MS) < 3 * NS_PER_MS
    assert sum(found) >= (2 if runs == 3 else 13), (n, found)
