"""Comparisons as a table: estimate with its interval, what round trips predict, and the verdict in words."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from netdiag.export.terminal.page import MUTED, STRONG, Page
from netdiag.export.terminal.tables import Column, Row, table
from netdiag.records.statistics import Comparison
from netdiag.records.verdict_words import VERDICTS
from netdiag.sanitise import one_line
from netdiag.units import format_ms

_PHASES_FIRST = (
    *("queue", "dns", "proxy", "tcp", "tls", "send", "continue", "wait", "transfer", "deliver"),
    *("first_event", "first_token", "first_visible", "total"),
)
_ALPHA = 0.05
_COLUMNS = (
    Column("ms"),
    Column("n", right=True),
    Column("diff.", right=True),
    Column("95 % interval", right=True),
    Column("predicted", right=True),
    Column("verdict", flexible=True),
)


def comparison_lines(rows: Sequence[Comparison], *, width: int, ascii_only: bool = False) -> list[Text]:
    """A table for each pair of arms: phases first, then the first events, then the total."""
    page = Page(width, ascii_only=ascii_only)
    pairs = dict.fromkeys((row.arm_a, row.arm_b) for row in rows)
    for number, (arm_a, arm_b) in enumerate(pairs):
        if number:
            page.blank()
        mine = [row for row in rows if (row.arm_a, row.arm_b) == (arm_a, arm_b)]
        how = "pair by pair" if mine[0].paired else "two samples"
        page.line(
            (f"{one_line(arm_b)} against {one_line(arm_a)}", STRONG), (f"   diff.: typical difference, {how}", MUTED)
        )
        table(page, _COLUMNS, [_row(c) for c in sorted(mine, key=_place)])
        _basis(page, mine)
    return page.lines


def _row(c: Comparison) -> Row:
    interval = "–" if c.lo_ns is None or c.hi_ns is None else f"[{_signed(c.lo_ns)}, {_signed(c.hi_ns)}]"
    if c.points_ns:
        interval = " ".join(_signed(point) for point in c.points_ns)
    needed = f": about {c.pairs_needed} more" if c.pairs_needed else ""
    words = VERDICTS.get(c.verdict, c.verdict) + (needed if c.verdict == "cannot-tell" else "")
    words += " *" if _by_chance(c) else ""
    cells = (
        c.quantity,
        str(c.pairs),
        _signed(c.estimate_ns),
        interval,
        _signed(c.predicted_ns) + (" ≠" if _unpredicted(c) else ""),
        words,
    )
    return Row(cells)


def _basis(page: Page, rows: Sequence[Comparison]) -> None:
    margins = dict.fromkeys(c.margin_ns for c in rows)
    words = ", ".join(f"± {format_ms(m)} ({', '.join(c.quantity for c in rows if c.margin_ns == m)})" for m in margins)
    page.wrapped(
        0, (f"margin ± {format_ms(rows[0].margin_ns)} ms" if len(margins) == 1 else f"margins in ms: {words}", MUTED)
    )
    total = next((c for c in rows if c.quantity == "total" and c.predicted_by), None)
    if total is not None:
        page.line(("total predicted from round trips:", MUTED))
        page.line((f"  {total.predicted_by}", MUTED))
    if any(c.lo_ns is None for c in rows):
        shown = ": the differences themselves" if any(c.points_ns for c in rows) else ""
        page.wrapped(0, (f"below six pairs there is no 95 % interval, so nothing is claimed{shown}", MUTED))
    if any(map(_by_chance, rows)):
        page.wrapped(
            0, ("* one of several quantities looked at: it may be chance (Holm's adjusted p above 0.05)", MUTED)
        )
    if any(map(_unpredicted, rows)):
        page.wrapped(0, ("≠ round trips alone do not explain it: something else differs, too", MUTED))


def _by_chance(c: Comparison) -> bool:
    """A direction that the interval shows, but that several such looks would show where there is none."""
    directed = c.verdict.startswith(("faster", "slower"))
    return directed and not c.primary and c.p_value_adjusted is not None and c.p_value_adjusted > _ALPHA


def _unpredicted(c: Comparison) -> bool:
    """The prediction is outside the interval, and by more than what matters off the estimate."""
    if c.predicted_ns is None or c.estimate_ns is None or c.lo_ns is None or c.hi_ns is None:
        return False
    outside = not c.lo_ns <= c.predicted_ns <= c.hi_ns
    return outside and abs(c.predicted_ns - c.estimate_ns) > c.margin_ns


def _place(c: Comparison) -> int:
    return _PHASES_FIRST.index(c.quantity) if c.quantity in _PHASES_FIRST else len(_PHASES_FIRST)


def _signed(duration_ns: int | None) -> str:
    return "–" if duration_ns is None else f"{duration_ns / 1e6:+.1f}".replace("-", "−")
