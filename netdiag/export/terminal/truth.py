"""What the lab did beside what the analysis says, phase by phase."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.text import Text

from netdiag.export.terminal.page import GOOD, MUTED, STRONG, Page
from netdiag.export.terminal.tables import Column, Row, table
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange
from netdiag.records.timing import PhaseName
from netdiag.sanitise import one_line
from netdiag.units import NS_PER_MS, format_ms

TOLERANCE_NS = 100_000
"""Wire phases are right within 0.1 ms where the truth is exact."""

_COLUMNS = (
    Column("request", flexible=True),
    Column("phase"),
    Column("truth ms", right=True),
    Column("netdiag ms", right=True),
    Column("error ms", right=True),
    Column("method", droppable=True),
)

TrueRow = tuple[int | None, str, Mapping[str, int]]
"""Frame of the first request octet, method and path, true durations by phase and of the total."""


def truth_table(
    title: str, truths: Iterable[TrueRow], analysis: Analysis, *, width: int, ascii_only: bool = False
) -> list[Text]:
    """One line per phase of each true exchange, and how many of them are right."""
    page = Page(width, ascii_only=ascii_only)
    page.line((one_line(title, most=200), STRONG))
    unmatched = list(analysis.exchanges)
    rows, right, count = [], 0, 0
    for packet, name, durations in truths:
        found = _take(unmatched, packet)
        label = one_line(name, most=60)
        for phase, true_ns in durations.items():
            row, good = _row(label, phase, true_ns, found)
            rows.append(row)
            right, count, label = right + good, count + 1, ""
    table(page, _COLUMNS, rows)
    page.blank()
    page.line((f"{right} of {count} within 0.1 ms", GOOD if right == count else STRONG))
    page.line(("exact unless the method says otherwise; what the truth does not name is unattributed", MUTED))
    return page.lines


def _take(unmatched: list[Exchange], packet: int | None) -> Exchange | None:
    """The exchange that begins in the same frame; for a connection that failed before any request, the first of the same kind."""
    found = next((exchange for exchange in unmatched if packet in _first_frames(exchange)), None)
    if found is not None:
        unmatched.remove(found)
    return found


def _first_frames(exchange: Exchange) -> set[int | None]:
    """The frame of the first request octet, by the phase that begins with it where there is one."""
    sent = [phase.first_packet for phase in exchange.phases if phase.name is PhaseName.SEND]
    return {sent[0] if sent else exchange.request_packet}


def _row(label: str, phase: str, true_ns: int, exchange: Exchange | None) -> tuple[Row, bool]:
    spans = [] if exchange is None else [p for p in exchange.phases if str(p.name) == phase]
    said = exchange.total_ns if phase == "total" and exchange else sum(p.duration_ns for p in spans) if spans else None
    if said is None:
        return Row((label, phase, format_ms(true_ns, digits=3), "–", "–", ""), bad=True), False
    error = said - true_ns
    method = " ".join(dict.fromkeys(str(p.method) for p in spans))
    good = abs(error) <= TOLERANCE_NS
    cells = (label, phase, format_ms(true_ns, digits=3), format_ms(said, digits=3), f"{error / NS_PER_MS:+.3f}", method)
    return Row(cells, bad=not good), good
