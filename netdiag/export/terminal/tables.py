"""Plain tables: one column gives way where the terminal is narrow."""

from __future__ import annotations

from collections.abc import Sequence, Set

from rich.cells import cell_len

from netdiag.export.terminal.page import BAD, MUTED, STRONG, Page, column
from netdiag.plain import plain

_GAP = 2
_LEAST = 12


@plain(frozen=True, slots=True)
class Column:
    """One column."""

    title: str
    right: bool = False
    """Numbers stand at the right."""
    droppable: bool = False
    """Left out where there is no room; the last such column goes first."""
    flexible: bool = False
    """Cut when that does not help, the last such column first; at least ``least`` cells stay where that is possible, ``_LEAST`` in any case.
    Left out where it is empty."""
    least: int = 12
    spare: bool = False
    """Left out rather than that a flexible column gets less than its ``least``."""
    keep_end: bool = False
    """Cut at the beginning: the end of a path tells more."""


@plain(frozen=True, slots=True)
class Row:
    """One row; ``remark`` follows the cells, and stands in their place where they are missing."""

    cells: tuple[str, ...]
    remark: str = ""
    bad: bool = False


def table(page: Page, columns: Sequence[Column], rows: Sequence[Row]) -> None:
    """Write titles and rows."""
    cells = [[page.glyphs(cell) for cell in row.cells] for row in rows]
    widths = [max(len(c.title), *(cell_len(r[i]) for r in cells if i < len(r)), 0) for i, c in enumerate(columns)]
    remark = min(max((cell_len(row.remark) for row in rows if not row.bad), default=0), page.width // 3)
    empty = {i for i, c in enumerate(columns) if c.flexible and cells and not any("".join(r[i : i + 1]) for r in cells)}
    shown = _fit(columns, widths, empty, page.width - (remark + _GAP if remark else 0))
    if remark > _LEAST and any(
        shown[i] < min(widths[i], c.least) for i, c in enumerate(columns) if c.flexible and i in shown
    ):
        shown = _fit(columns, widths, empty, page.width - _LEAST - _GAP)  # the remark gives way, too
    page.line((_line([c.title for c in columns], columns, shown, page), STRONG))
    for row, texts in zip(rows, cells, strict=True):
        style = BAD if row.bad else ""
        if len(texts) < len(columns):
            texts = [*texts, *[""] * (len(columns) - len(texts))]
            first = column(_cut(texts[0], shown.get(0, 0), columns[0], page), shown.get(0, 0))
            page.line(first, (" " * _GAP + row.remark, style or MUTED))
            continue
        page.line((_line(texts, columns, shown, page), style), (" " * _GAP + row.remark if row.remark else "", MUTED))


def _fit(columns: Sequence[Column], widths: Sequence[int], empty: Set[int], room: int) -> dict[int, int]:
    """Width by index of the columns that are shown."""
    shown = {i: width for i, width in enumerate(widths) if i not in empty}
    for i in reversed([i for i, c in enumerate(columns) if c.droppable and i in shown]):
        if _total(shown) <= room:
            break
        del shown[i]
    _shrink(shown, {i: c.least for i, c in enumerate(columns) if c.flexible}, room)
    for i in [i for i, c in enumerate(columns) if c.spare]:
        if _total(shown) > room:
            del shown[i]
            _widen(shown, widths, room)
    _shrink(shown, {i: _LEAST for i, c in enumerate(columns) if c.flexible}, room)
    return shown


def _shrink(shown: dict[int, int], least: dict[int, int], room: int) -> None:
    """Take what is too much from the flexible columns, the last one first."""
    for i in sorted(least.keys() & shown.keys(), reverse=True):
        shown[i] = max(min(least[i], shown[i]), shown[i] - max(0, _total(shown) - room))


def _widen(shown: dict[int, int], widths: Sequence[int], room: int) -> None:
    """Give what has become free to the columns that were cut, the first one first."""
    for i in shown:
        shown[i] += min(widths[i] - shown[i], max(0, room - _total(shown)))


def _total(shown: dict[int, int]) -> int:
    return sum(shown.values()) + _GAP * (len(shown) - 1)


def _line(texts: Sequence[str], columns: Sequence[Column], shown: dict[int, int], page: Page) -> str:
    parts = [column(_cut(texts[i], w, columns[i], page), w, right=columns[i].right) for i, w in shown.items()]
    return (" " * _GAP).join(parts)


def _cut(text: str, cells: int, how: Column, page: Page) -> str:
    if cell_len(text) <= cells:
        return text
    mark = "." if page.ascii_only else "…"
    while cell_len(text) > cells - 1:
        text = text[1:] if how.keep_end else text[:-1]
    return mark + text if how.keep_end else text + mark
