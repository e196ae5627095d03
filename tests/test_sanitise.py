from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.sanitise import one_line
from tests.support.hostile import FORBIDDEN, PAYLOADS

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
"""All code points, lone surrogates too."""


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_no_hostile_payload_stays_raw(payload: str) -> None:
    assert not FORBIDDEN.search(one_line(payload))


@given(ANY_TEXT)
def test_any_text_becomes_encodable_and_visible(text: str) -> None:
    cleaned = one_line(text)
    assert not FORBIDDEN.search(cleaned)
    cleaned.encode("utf-8")


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"])))
def test_printable_ascii_is_left_alone(text: str) -> None:
    assert one_line(text) == text


@given(ANY_TEXT)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert one_line(one_line(text)) == one_line(text)


@given(ANY_TEXT, st.integers(min_value=1, max_value=30))
def test_cut_text_is_never_longer_than_asked(text: str, most: int) -> None:
    assert len(one_line(text, most=most)) <= most


def test_what_is_hidden_is_spelt_out_not_dropped() -> None:
    assert one_line("a\x1b[31mb\u202ec\ud800") == r"a\x1b[31mb\u{202e}c\u{d800}"


def test_letters_of_all_languages_stay() -> None:
    assert one_line("Grüße, 中文, العربية, é, e\u0301, 👍") == "Grüße, 中文, العربية, é, e\u0301, 👍"
