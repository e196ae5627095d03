"""Named causes, the costliest first."""

from __future__ import annotations

from netdiag.export.terminal.page import BAD, MUTED, STRONG, Page
from netdiag.records.analysis import Analysis
from netdiag.records.finding import Finding, Severity
from netdiag.sanitise import one_line
from netdiag.units import format_ms

_MOST = 8
_ORDER = {severity: place for place, severity in enumerate(Severity)}


def findings(page: Page, analysis: Analysis) -> None:
    """Each finding with its cost, its confidence, its advice and the packets that prove it."""
    ranked = sorted(analysis.findings, key=lambda f: (_ORDER[f.severity], -f.cost_ns))
    for finding in ranked[:_MOST]:
        _one(page, finding)
    if len(ranked) > _MOST:
        page.line((f"{len(ranked) - _MOST} more findings: --json", MUTED))


def _one(page: Page, finding: Finding) -> None:
    style = BAD if finding.severity in (Severity.CRITICAL, Severity.MAJOR) else STRONG
    place = f" in {finding.phase}" if finding.phase else ""
    page.line(
        (f"{finding.severity}  {one_line(finding.id, most=60)}", style),
        f"  {format_ms(finding.cost_ns)} ms{place}, {one_line(finding.subject, most=40)}",
        (f"  {finding.confidence}", MUTED),
    )
    frames = ", ".join(str(number) for number in finding.evidence.packets[:6])
    proof = f" (frames {frames}{', …' if len(finding.evidence.packets) > 6 else ''})" if frames else ""
    page.wrapped(2, one_line(finding.advice, most=600), (proof, MUTED))
