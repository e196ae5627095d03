"""One line per file, when several were analysed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from rich.text import Text

from netdiag.errors import NetdiagError
from netdiag.export.terminal.page import MUTED, Page
from netdiag.export.terminal.tables import Column, Row, table
from netdiag.records.analysis import Analysis
from netdiag.records.exchange_table import count_failed, slowest
from netdiag.sanitise import one_line
from netdiag.units import format_duration

_COLUMNS = (
    Column("file", flexible=True, least=28, keep_end=True),
    Column("packets", right=True),
    Column("conns", right=True, droppable=True),
    Column("requests", right=True),
    Column("failed", right=True),
    Column("slowest", right=True),
    Column("level", droppable=True),
)


def file_row(path: str, analysis: Analysis | None, error: NetdiagError | None) -> Row:
    """The row of one file; an unreadable one says why."""
    name = one_line(path, most=300)
    if analysis is None:
        return Row((name,), one_line(error.message if error else "", most=200), bad=True)
    longest = next((exchange.total_ns for exchange in slowest(analysis.exchanges, 1)), None)
    cells = (
        name,
        f"{analysis.source.packets:,}",
        f"{len(analysis.connections):,}",
        f"{len(analysis.exchanges):,}",
        f"{count_failed(analysis.exchanges):,}",
        format_duration(longest),
        str(analysis.source.evidence_level),
    )
    return Row(cells, _remark(analysis))


def _remark(analysis: Analysis) -> str:
    source = analysis.source
    anomalies = len(analysis.anomalies)
    parts = [
        f"cut at byte {source.cut_at_byte:,}" if source.cut_at_byte is not None else "",
        f"{source.dropped_packets:,} dropped" if source.dropped_packets else "",
        f"{anomalies:,} anomal{'y' if anomalies == 1 else 'ies'}" if anomalies else "",
    ]
    return ", ".join(part for part in parts if part)


def files_table(rows: Sequence[Row], *, width: int, ascii_only: bool = False) -> list[Text]:
    """The table as lines; a folder that holds all files is named once."""
    page = Page(width, ascii_only=ascii_only)
    folder = _common_folder([row.cells[0] for row in rows])
    if folder and len(rows) > 1:
        page.line(("in ", MUTED), folder)
        rows = [replace(row, cells=(row.cells[0][len(folder) + 1 :], *row.cells[1:])) for row in rows]
    table(page, _COLUMNS, rows)
    return page.lines


def _common_folder(paths: Sequence[str]) -> str:
    try:
        return os.path.commonpath([os.path.dirname(path) for path in paths])
    except ValueError:  # absolute and relative paths mixed, or no path at all
        return ""
