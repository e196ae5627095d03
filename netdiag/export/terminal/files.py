"""One line per file, when several were analysed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from netdiag.errors import NetdiagError
from netdiag.export.terminal.page import BAD, MUTED, STRONG, Page, Piece, column
from netdiag.records.analysis import Analysis
from netdiag.sanitise import one_line
from netdiag.units import format_duration

_TITLES = ("packets", "conns", "requests", "failed", "slowest", "level")


@dataclass(frozen=True, slots=True)
class FileRow:
    """What the table says about one file."""

    path: str
    cells: tuple[str, ...]
    remark: str
    bad: bool = False


def file_row(path: str, analysis: Analysis | None, error: NetdiagError | None) -> FileRow:
    """The row of one file; an unreadable one says why."""
    name = one_line(path, most=300)
    if analysis is None:
        return FileRow(name, ("",) * len(_TITLES), one_line(error.message if error else "", most=200), bad=True)
    slowest = max((exchange.total_ns for exchange in analysis.exchanges), default=None)
    cells = (
        f"{analysis.source.packets:,}",
        f"{len(analysis.connections):,}",
        f"{len(analysis.exchanges):,}",
        f"{sum(exchange.failed for exchange in analysis.exchanges):,}",
        format_duration(slowest),
        str(analysis.source.evidence_level),
    )
    return FileRow(name, cells, _remark(analysis))


def _remark(analysis: Analysis) -> str:
    source = analysis.source
    parts = [
        f"cut at byte {source.cut_at_byte:,}" if source.cut_at_byte is not None else "",
        f"{source.dropped_packets:,} dropped" if source.dropped_packets else "",
        f"{len(analysis.anomalies):,} anomalies" if analysis.anomalies else "",
    ]
    return ", ".join(part for part in parts if part)


def files_table(rows: Sequence[FileRow], *, width: int, ascii_only: bool = False) -> list[Text]:
    """The table, the name cut from the left where it is too long: the end of a path tells more than its beginning."""
    page = Page(width, ascii_only=ascii_only)
    widths = [max(len(title), *(len(row.cells[i]) for row in rows)) for i, title in enumerate(_TITLES)]
    taken = sum(widths) + 2 * len(widths)
    longest = max(cell_len(row.path) for row in rows)
    name_width = min(longest, max(16, page.width - taken - min(30, max((len(r.remark) for r in rows), default=0)) - 2))
    titles = "".join("  " + column(title, size, right=True) for title, size in zip(_TITLES, widths, strict=True))
    page.line((column("file", name_width) + titles, STRONG))
    for row in rows:
        cells = "".join("  " + column(cell, size, right=True) for cell, size in zip(row.cells, widths, strict=True))
        remark: Piece = ("  " + row.remark, BAD if row.bad else MUTED)
        page.line(column(_from_the_end(row.path, name_width), name_width), "" if row.bad else cells, remark)
    return page.lines


def _from_the_end(path: str, cells: int) -> str:
    if cell_len(path) <= cells:
        return path
    while cell_len(path) > cells - 1:
        path = path[1:]
    return "…" + path
