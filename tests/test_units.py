"""Nanoseconds and octets as text: what a person reads is rounded, and never contradicts the number."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.units import NS_PER_MS, NS_PER_S, format_bytes, format_duration, format_ms, format_ms_readably

durations = st.one_of(st.integers(0, 10_000_000), st.integers(0, 10**15)).flatmap(lambda n: st.sampled_from([n, -n]))
WORTH_NS = {"µs": 1_000, "ms": NS_PER_MS, "s": NS_PER_S}


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (None, "–"),
        (0, "0 µs"),
        (870_000, "870 µs"),
        (12_340_000, "12.3 ms"),
        (4_560_000_000, "4.56 s"),
        (125_000_000_000, "2 min 05 s"),
        (-125_000_000_000, "-2 min 05 s"),
        (-12_340_000, "-12.3 ms"),
    ],
)
def test_durations_in_the_unit_that_suits_them(duration_ns: int | None, text: str) -> None:
    assert format_duration(duration_ns) == text


@given(durations)
def test_a_duration_reads_back_to_within_its_last_digit(duration_ns: int) -> None:
    text = format_duration(duration_ns)
    minutes = re.fullmatch(r"(-?)(\d+) min (\d\d) s", text)
    if minutes:
        read_ns = (60 * int(minutes[2]) + int(minutes[3])) * NS_PER_S * (-1 if minutes[1] else 1)
        assert abs(read_ns - duration_ns) < NS_PER_S
        return
    value, unit = text.split()
    digits = len(value.partition(".")[2])
    assert abs(float(value) * WORTH_NS[unit] - duration_ns) <= WORTH_NS[unit] / 10**digits * 0.51


def test_milliseconds_for_tables() -> None:
    assert [format_ms(ns) for ns in (None, 0, 12_340_000, 49_000)] == ["–", "0.0", "12.3", "0.0"]
    assert format_ms(12_345_678, digits=3) == "12.346"
    assert format_ms(None, none="") == ""


@given(durations)
def test_what_took_some_time_is_not_shown_as_nothing(duration_ns: int) -> None:
    text = format_ms_readably(duration_ns)
    assert float(text) != 0 or abs(duration_ns) < 500
    assert len(text.partition(".")[2]) <= 3


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "–"),
        (0, "0 B"),
        (312, "312 B"),
        (999, "999 B"),
        (12_400, "12.4 kB"),
        (3_100_000, "3.1 MB"),
        (10**16, "10000.0 TB"),
    ],
)
def test_octets_in_decimal_units(count: int | None, text: str) -> None:
    assert format_bytes(count) == text
