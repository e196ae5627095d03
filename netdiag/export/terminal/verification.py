"""A second witness beside netdiag: agreement per field, and the differences."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from netdiag.export.terminal.page import BAD, GOOD, MUTED, STRONG, Page
from netdiag.export.terminal.tables import Column, Row, table
from netdiag.records.verification import Difference, Verification
from netdiag.sanitise import one_line

_RATES = (Column("field"), Column("agree", right=True), Column("compared", right=True), Column("%", right=True))
_MOST = 50


def verification_lines(
    result: Verification, *, width: int = 120, ascii_only: bool = False, show_all: bool = False
) -> list[Text]:
    """Agreement as a table, then the differences that no known reason explains, then the others by reason."""
    page = Page(width, ascii_only=ascii_only)
    page.line((f"netdiag beside {one_line(result.witness)}", STRONG))
    table(
        page, _RATES, [Row((name, f"{a:,}", f"{n:,}", f"{100 * a / n:.2f}")) for name, (a, n) in result.rates().items()]
    )
    page.blank()
    unexplained = result.unexplained
    known = [d for d in result.differences if d.reason is not None]
    page.line((f"{_differences(unexplained)} without a known reason", BAD if unexplained else GOOD))
    _list(page, unexplained)
    page.line((f"{_differences(known)} of a known kind", MUTED))
    if show_all:
        _list(page, known)
    else:
        for reason in dict.fromkeys(d.reason for d in known):
            page.hanging(2, f"{sum(d.reason == reason for d in known)} × ", (str(reason), MUTED))
    return page.lines


def verification_mapping(result: Verification) -> dict[str, Any]:
    """The comparison for JSON."""
    return {
        "witness": result.witness,
        "fields": {name: {"agree": a, "compared": n} for name, (a, n) in result.rates().items()},
        "unexplained": len(result.unexplained),
        "differences": [dataclasses.asdict(d) for d in result.differences],
    }


def _differences(found: Sequence[Difference]) -> str:
    return "1 difference" if len(found) == 1 else f"{len(found):,} differences"


def _list(page: Page, differences: list[Difference]) -> None:
    for d in differences[:_MOST]:
        page.line(
            f"  {one_line(d.field)}  {one_line(d.where, most=100)}: netdiag {one_line(d.netdiag, most=60)}, witness {one_line(d.witness, most=60)}"
        )
        if d.reason:
            page.line((f"      {d.reason}", MUTED))
    if len(differences) > _MOST:
        page.line((f"  … and {len(differences) - _MOST} more; --json has them all", MUTED))
