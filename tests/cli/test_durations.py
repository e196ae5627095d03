"""Durations with and without a unit, wherever an option takes one."""

from __future__ import annotations

import click
import pytest

from netdiag.cli.durations import MILLISECONDS, SECONDS


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("6s", 6.0), ("6", 6.0), ("0.5", 0.5), ("500ms", 0.5), ("250 us", 0.00025), ("2min", 120.0), ("2M", 120.0), ("1h", 3600.0), (".5s", 0.5)],
)  # fmt: skip
def test_seconds(text: str, seconds: float) -> None:
    assert SECONDS.convert(text, None, None) == pytest.approx(seconds)


def test_a_plain_number_is_in_the_options_own_unit() -> None:
    assert MILLISECONDS.convert("20", None, None) == 20.0
    assert MILLISECONDS.convert("0.02s", None, None) == pytest.approx(20.0)


@pytest.mark.parametrize("text", ["", "six", "6 parsecs", "-1", "1e3", "inf", "nan", "1.2.3", "s", "9" * 13])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no duration"):
        SECONDS.convert(text, None, None)
