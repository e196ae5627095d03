from __future__ import annotations

import html.parser
from dataclasses import replace

import pytest

from tests.support import analyses
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


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_hostile_text_in_a_notebook(payload: str) -> None:
    analysis = analyses.one_request()
    e = replace(analysis.exchanges[0], path=payload, authority=payload, method=payload)
    shown = replace(analysis, exchanges=(e,))._repr_html_()
    seen = Tags()
    seen.feed(shown)
    assert set(seen.tags) == {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}
    assert seen.attributes == []
    assert not FORBIDDEN.search(shown)


def test_a_large_analysis_is_small_in_a_notebook() -> None:
    shown = analyses.many(1000)._repr_html_()
    assert len(shown) < 50_000
    assert "and 950 more exchanges" in shown


def test_repr_is_one_line() -> None:
    assert repr(analyses.many(10)) == "<Analysis file L3 812 packets, 8 connections, 10 exchanges>"
