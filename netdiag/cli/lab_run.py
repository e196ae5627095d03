"""``netdiag lab run``: one scenario on one tier, its truth beside what netdiag says."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from netdiag.cli.console import ascii_only, note, width_of
from netdiag.cli.console import show as show_lines
from netdiag.cli.lab_live import probe_of, require

if TYPE_CHECKING:
    from netdiag.export.terminal.truth import TrueRow
    from netdiag.lab.compare import PhaseError
    from netdiag.lab.scenario import Scenario


def run_built(plan: Scenario, *, output: Path | None, without_keys: bool) -> None:
    """Tier T0: the report of the analysis, then the truth."""
    from netdiag import api
    from netdiag.cli.results import print_report
    from netdiag.lab.builder.output import write
    from netdiag.lab.compare import errors
    from netdiag.lab.score import run

    if without_keys:
        plan = dataclasses.replace(plan, capture=dataclasses.replace(plan.capture, secrets="none"))
    done = run(plan, api.analyze)
    print_report(done.analysis)
    click.echo()
    truth = done.recorded.truth
    requests = [f"{i}  {e.method} {e.path}" for i, e in enumerate(truth.exchanges)]
    _print_truth(plan.title, _rows(errors(truth, done.analysis), requests), "T0")
    if output is not None:
        note("written: " + ", ".join(str(path) for path in write(plan, output)))


def run_live(plan: Scenario, tier: str, *, trials: int) -> None:
    """Tiers T1 and T2: what the truth determines of each call. Raises UsageError, and PrivilegeMissing where the tier is not possible."""
    from netdiag.lab import live_score

    require(tier, plan)
    document, found = live_score.run_live(tier, plan, probe_of(tier, trials=trials))
    source = document["source"]
    calls = len(document["exchanges"])
    note(f"evidence {source['evidence_level']}, {calls} call{'s' * (calls != 1)}")
    first = plan.connections[0].requests[0]
    requests = [f"{i}  {first.method} {first.path}" for i in range(1 + max((e.exchange for e in found), default=0))]
    _print_truth(plan.title, _rows(found, requests), tier)


def _rows(errors: Iterable[PhaseError], requests: list[str]) -> Iterator[TrueRow]:
    from netdiag.export.terminal.truth import TrueRow

    for e in errors:
        yield TrueRow(
            request=requests[e.exchange],
            phase=e.phase,
            true_ns=e.true_ns,
            found_ns=e.found_ns,
            method=e.method or "",
        )


def _print_truth(title: str, rows: Iterable[TrueRow], tier: str) -> None:
    from netdiag.export.terminal.truth import truth_table
    from netdiag.lab.live_score import WITHIN_NS

    lines = truth_table(title, rows, width=width_of(), ascii_only=ascii_only(), within_ns=WITHIN_NS[tier])
    show_lines(lines)
