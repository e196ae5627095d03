from __future__ import annotations

import html.parser
import re
from dataclasses import replace

import pytest

from tests.support import analyses, fabricated
from tests.support.hostile import FORBIDDEN, PAYLOADS


class Tags(html.parser.HTMLParser):
    """Collects tags and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


class Cells(html.parser.HTMLParser):
    """The text of each cell, row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


_OURS = re.compile(
    r"text-align:(left|right)|overflow-x:auto"
    r"|display:inline-block;height:.7em;width:\d+px;background:linear-gradient\(90deg"
    r"(,(transparent|#[0-9A-F]{6}) \d+px \d+px)+\)"
)


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_hostile_text_in_a_notebook(payload: str) -> None:
    analysis = analyses.one_request()
    e = replace(analysis.exchanges[0], path=payload, authority=payload, method=payload)
    shown = replace(analysis, exchanges=(e,))._repr_html_()
    seen = Tags()
    seen.feed(shown)
    assert set(seen.tags) == {"div", "p", "table", "thead", "tbody", "tr", "th", "td", "span"}
    assert seen.attributes
    assert all(name == "style" and _OURS.fullmatch(value or "") for name, value in seen.attributes)
    assert not FORBIDDEN.search(shown)


def test_the_columns_are_the_phases_that_there_are_and_add_up() -> None:
    """queue, proxy, continue and deliver too: a table that leaves them out does not sum to its total."""
    e = fabricated.exchange("queue 5 | tcp 10 | send 1 | continue 7 | send 1 | wait 20~5 | transfer 3 | deliver 2")
    shown = fabricated.analysis(e)._repr_html_()
    cells = Cells()
    cells.feed(shown)
    titles, values = cells.rows
    named = dict(zip(titles, values, strict=True))
    assert titles[3:-3] == ["queue", "tcp", "send", "continue", "wait", "transfer", "deliver"]
    assert named["wait"] == "~20.0"
    assert sum(float(value.lstrip("~")) for value in values[3:-2]) == float(named["total ms"])


def test_what_cannot_be_read_is_told_as_in_the_report() -> None:
    cells = Cells()
    cells.feed(analyses.keyless()._repr_html_())
    assert cells.rows[1][:3] == ["0", "api.example.com", ""]
    cells = Cells()
    cells.feed(analyses.failures()._repr_html_())
    assert "TLS failure" in {row[2] for row in cells.rows}


def test_a_large_analysis_is_small_in_a_notebook() -> None:
    shown = analyses.many(1000)._repr_html_()
    assert len(shown) < 50_000
    assert "and 950 more exchanges" in shown


def test_repr_is_one_line() -> None:
    assert repr(analyses.many(10)) == "<Analysis file L3 812 packets, 8 connections, 10 exchanges>"
