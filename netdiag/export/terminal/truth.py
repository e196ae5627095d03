"""What the lab did beside what the analysis says, phase by phase."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.text import Text

from netdiag.export.terminal.page import GOOD, MUTED, STRONG, Page
from netdiag.export.terminal.tables import Column, Row, table
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueRow:
    """One phase (or the total) of one request."""

    request: str
    phase: str
    true_ns: int | None
    """None when only the analysis has it."""
    found_ns: int | None
    """None when only the truth has it."""
    method: str = ""

    def is_right(self, within_ns: int = TOLERANCE_NS) -> bool:
        """Both have it, and agree."""
        both = self.true_ns is not None and self.found_ns is not None
        return both and abs((self.found_ns or 0) - (self.true_ns or 0)) <= within_ns


def truth_table(
    title: str, rows: Iterable[TrueRow], *, width: int, ascii_only: bool = False, within_ns: int = TOLERANCE_NS
) -> list[Text]:
    """One line per row, and how many of them are right. ``within_ns``: how far off is still right (a busy machine is in what is measured)."""
    page = Page(width, ascii_only=ascii_only)
    page.line((one_line(title, most=200), STRONG))
    found = list(rows)
    before = ["", *(row.request for row in found)]
    lines = [_line(row, within_ns, repeated=row.request == last) for row, last in zip(found, before, strict=False)]
    table(page, _COLUMNS, lines)
    right = sum(row.is_right(within_ns) for row in found)
    page.blank()
    page.line((f"{right} of {len(found)} within {within_ns / NS_PER_MS:g} ms", GOOD if right == len(found) else STRONG))
    page.line(("what the truth does not name is unattributed", MUTED))
    return page.lines


def _line(row: TrueRow, within_ns: int, *, repeated: bool) -> Row:
    error = "–"
    if row.true_ns is not None and row.found_ns is not None:
        error = f"{(row.found_ns - row.true_ns) / NS_PER_MS:+.3f}"
    request = "" if repeated else one_line(row.request, most=80)
    durations = (format_ms(row.true_ns, digits=3), format_ms(row.found_ns, digits=3))
    return Row((request, row.phase, *durations, error, row.method), bad=not row.is_right(within_ns))
