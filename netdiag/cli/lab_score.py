"""``netdiag lab score``: errors per phase against the truth, tier by tier, and where injected time landed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from netdiag.cli.console import ascii_only, note, width_of
from netdiag.cli.console import show as show_lines
from netdiag.cli.lab_live import WHAT, probe_of, runnable, why_not
from netdiag.export.terminal.page import STRONG, Page
from netdiag.export.terminal.tables import Column, Row, table
from netdiag.units import NS_PER_MS, format_ms

if TYPE_CHECKING:
    from netdiag.lab.scenario import Scenario
    from netdiag.lab.score import PhaseScore, Response, Score

_WORST = 10
DOSES_LIVE = (0.0, 1.0, 2.0, 4.0)
"""Fewer steps than on T0, where a step costs milliseconds."""


def measure(tiers: Sequence[str], names: Sequence[str], *, seeds: Sequence[int], doses: bool, trials: int) -> int:
    """Print one score a tier; 1 when any sum is wrong."""
    wrong = False
    for tier in dict.fromkeys(tiers):
        reason = why_not(tier)
        if reason is not None:
            note(f"{tier} is left out: {reason}")
            continue
        wrong |= _measure(tier, runnable(tier, names), seeds=seeds, doses=doses, trials=trials)
    return int(wrong)


def _measure(tier: str, chosen: Sequence[Scenario], *, seeds: Sequence[int], doses: bool, trials: int) -> bool:
    from netdiag.lab.score import causes

    page = Page(width_of(), ascii_only=ascii_only())
    result = _score(tier, chosen, seeds=seeds, trials=trials)
    page.line((f"{tier}, {WHAT[tier]}: {result.runs} runs; absolute errors in ms", STRONG))
    _score_table(page, result, tier)
    page.blank()
    if doses:
        responses = [_respond(tier, scenario, trials=trials) for scenario in causes(chosen)]
        page.line(("per cause, from nothing to four times its size", STRONG))
        _dose_table(page, responses)
        page.blank()
    show_lines(page.lines)
    return bool(result.wrong_sums)


def _score(tier: str, chosen: Sequence[Scenario], *, seeds: Sequence[int], trials: int) -> Score:
    from netdiag import api
    from netdiag.lab.live_score import score_live
    from netdiag.lab.score import score

    if tier == "T0":
        return score(chosen, api.analyze, seeds=seeds)
    return score_live(
        tier, chosen, probe_of(tier, trials=trials), seeds=seeds, note=lambda name: note(f"{tier} {name}")
    )


def _respond(tier: str, scenario: Scenario, *, trials: int) -> Response:
    from netdiag import api
    from netdiag.lab.live_score import respond_live
    from netdiag.lab.score import respond

    if tier == "T0":
        return respond(scenario, api.analyze)
    note(f"{tier} {scenario.name}: {scenario.cause}")
    return respond_live(tier, scenario, probe_of(tier, trials=trials), doses=DOSES_LIVE)


def _score_table(page: Page, result: Score, tier: str) -> None:
    from netdiag.lab.live_score import WITHIN_NS

    within_ns = WITHIN_NS[tier]
    names = ("n", "median", "p95", "max", "missing", "extra")
    columns = (
        Column("phase"),
        *(Column(n, right=True) for n in names),
        Column("bounds hold", right=True, droppable=True),
    )
    table(page, columns, [_score_row(s, within_ns) for s in result.by_phase()])
    page.blank()
    worst = result.outliers(within_ns)
    sums = f"{len(result.wrong_sums)} sums that are not the total"
    page.line(f"{len(worst)} of {len(result.errors)} off by more than {within_ns / NS_PER_MS:g} ms; {sums}")
    for e in worst[:_WORST]:
        missing = "missing" if e.found_ns is None else "extra" if e.true_ns is None else None
        page.line(
            f"  {e.scenario} seed {e.seed}, exchange {e.exchange}, {e.phase}: "
            f"{missing or format_ms(e.error_ns, digits=3) + ' ms'}"
        )
    if len(worst) > _WORST:
        page.line(f"  and {len(worst) - _WORST} more")


def _score_row(s: PhaseScore, within_ns: int) -> Row:
    sizes = (format_ms(size, digits=4) for size in (s.median_ns, s.p95_ns, s.max_ns))
    held = f"{s.within_bounds} of {s.bounded}" if s.bounded else ""
    cells = (s.phase, str(s.n), *sizes, str(s.missing), str(s.extra), held)
    return Row(cells, bad=(s.median_ns or 0) > within_ns)


def _dose_table(page: Page, responses: Sequence[Response]) -> None:
    columns = (
        Column("scenario", flexible=True),
        Column("cause", flexible=True),
        Column("phase"),
        Column("right phase", right=True),
        Column("strays ms", right=True),
        Column("monotone", droppable=True),
    )
    table(page, columns, [_dose_row(r) for r in responses])


def _dose_row(r: Response) -> Row:
    share = "–" if r.share_in_right_phase is None else f"{100 * r.share_in_right_phase:.2f} %"
    strays, monotone = format_ms(r.strays_ns, digits=3), "yes" if r.is_monotone else "no"
    return Row((r.scenario, r.cause, r.cause_phase, share, strays, monotone), bad=not r.is_monotone)
