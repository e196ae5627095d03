"""Bars in eighth blocks on a common time axis."""

from __future__ import annotations

from collections.abc import Sequence

from netdiag.plain import plain

_LEFT_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = " ▁▂▃▄▅▆▇█"


@plain(frozen=True, slots=True)
class Axis:
    """A span of time laid over ``cells`` terminal cells."""

    started_at: int
    ended_at: int
    cells: int

    def eighths(self, at: int) -> int:
        """Eighths of a cell from the left edge, 0 … 8 × cells."""
        length = self.ended_at - self.started_at
        if length <= 0:
            return 0
        place = (at - self.started_at) * 8 * self.cells
        return min(max((place + length // 2) // length, 0), 8 * self.cells)

    def cell(self, at: int) -> int:
        """The cell in which the instant lies, 0 … cells − 1."""
        return min(self.eighths(at) // 8, self.cells - 1)


def bar(axis: Axis, started_at: int, ended_at: int, *, hatched: bool = False) -> str:
    """A bar of the axis's full width. However short, it shows at least a sliver; it begins on a half cell and ends on an eighth."""
    start, end = axis.eighths(started_at), axis.eighths(ended_at)
    first = min(start // 8, axis.cells - 1)
    if hatched:
        return _pad(" " * first + "░" * max(1, -(-end // 8) - first), axis.cells)
    if end - start < 1 or end <= 8 * first:
        return _pad(" " * first + ("▏" if start % 8 < 4 else "▐"), axis.cells)
    last = (end - 1) // 8
    if first == last:
        return _pad(" " * first + ("▐" if start % 8 >= 4 else _LEFT_EIGHTHS[end - 8 * first]), axis.cells)
    head = "▐" if start % 8 >= 4 else "█"
    tail = _LEFT_EIGHTHS[end - 8 * last]
    return _pad(" " * first + head + "█" * (last - first - 1) + tail, axis.cells)


def gaps_bar(axis: Axis, gaps: Sequence[tuple[int, int]]) -> str:
    """Time that nothing explains, drawn as an outline."""
    cells = [" "] * axis.cells
    for started_at, ended_at in gaps:
        for cell in range(axis.cell(started_at), max(axis.cell(started_at), -(-axis.eighths(ended_at) // 8) - 1) + 1):
            cells[cell] = "╌"
    return "".join(cells)


def ticks(axis: Axis, instants: Sequence[int]) -> str:
    """How many events fell into each cell, as heights; the tallest cell is full."""
    counts = [0] * axis.cells
    for at in instants:
        counts[axis.cell(at)] += 1
    tallest = max(counts, default=0)
    return "".join(_HEIGHTS[-(-8 * count // tallest)] if count else " " for count in counts)


def stacked(lengths: Sequence[int], full: int, cells: int) -> list[int]:
    """Cells for each of several lengths that follow each other, where ``full`` fills them all; every length above zero that rounds away keeps its order."""
    edges, total, made = 0, 0, []
    for length in lengths:
        total += length
        edge = min(cells, (total * cells + full // 2) // full) if full > 0 else 0
        made.append(edge - edges)
        edges = edge
    return made


def _pad(text: str, cells: int) -> str:
    return text[:cells] + " " * (cells - len(text))
