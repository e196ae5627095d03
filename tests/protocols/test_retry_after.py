"""For how long a refusal asks to be left alone."""

from __future__ import annotations

import email.utils

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.retry_after import Asked, asked
from netdiag.units import NS_PER_MS, NS_PER_S

NOW_NS = 1_700_000_000 * NS_PER_S


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "7"}, Asked(7 * NS_PER_S, "retry-after")),
        ({"retry-after": "0"}, Asked(0, "retry-after")),
        ({"retry-after": "0.25"}, Asked(NS_PER_S // 4, "retry-after")),
        ({"retry-after-ms": "1500", "retry-after": "2"}, Asked(1500 * NS_PER_MS, "retry-after-ms")),
        ({"retry-after-ms": "soon", "retry-after": "2"}, Asked(2 * NS_PER_S, "retry-after")),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "when it is over"}, None),
    ],
)
def test_what_is_asked_for(headers: dict[str, str], expected: Asked | None) -> None:
    assert asked(headers, wall_ns=NOW_NS) == expected


@pytest.mark.parametrize(("ahead_s", "pause_s"), [(30, 30), (0, 0), (-30, 0)])
def test_a_date_counts_from_when_the_answer_came(ahead_s: int, pause_s: int) -> None:
    date = email.utils.formatdate(NOW_NS // NS_PER_S + ahead_s, usegmt=True)
    assert asked({"retry-after": date}, wall_ns=NOW_NS) == Asked(pause_s * NS_PER_S, "retry-after")


def test_the_model_apis_own_field_counts_only_where_it_means_something() -> None:
    headers = {"retry-after-ms": "5"}
    assert asked(headers, wall_ns=NOW_NS, milliseconds=False) is None


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_asks_for_no_negative_pause(seconds: str, milliseconds: str) -> None:
    found = asked({"retry-after": seconds, "retry-after-ms": milliseconds}, wall_ns=NOW_NS)
    assert found is None or found.ns >= 0
