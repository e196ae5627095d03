"""SETTINGS and GOAWAY, kept up to a limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.conversation import CLIENT, SERVER, Http2Facts
from netdiag.protocols.http2 import facts as module
from netdiag.protocols.http2.facts import FactsKeeper, settings_of
from netdiag.wire.chunk import Moment
from tests.support import h2_bytes as h2


def at(ms: int) -> Moment:
    return Moment(ms, ms, None)


@given(st.dictionaries(st.integers(0, 65_535), st.integers(0, 2**32 - 1), max_size=8), st.binary(max_size=5))
def test_settings_are_read_as_they_were_written(values: dict[int, int], rest: bytes) -> None:
    octets = b"".join(number.to_bytes(2, "big") + value.to_bytes(4, "big") for number, value in values.items())
    assert settings_of(octets + rest) == values


def test_of_a_setting_that_comes_twice_the_last_counts() -> None:
    assert settings_of(h2.settings(s3=1)[9:] + h2.settings(s3=2)[9:]) == {3: 2}


def test_acknowledgements_go_to_the_oldest_settings_of_the_other_side() -> None:
    facts = Http2Facts()
    keeper = FactsKeeper(facts)
    keeper.settings(CLIENT, {3: 1}, at(1))
    keeper.settings(SERVER, {3: 2}, at(2))
    keeper.settings(CLIENT, {3: 3}, at(3))
    keeper.acknowledged(SERVER, at(4))
    keeper.acknowledged(CLIENT, at(5))
    keeper.acknowledged(SERVER, at(6))
    keeper.acknowledged(SERVER, at(7))  # nothing is left to be acknowledged
    assert [s.acknowledged and s.acknowledged.seen_at for s in facts.settings] == [4, 5, 6]


def test_a_goaway_names_its_last_stream_and_error() -> None:
    facts = Http2Facts()
    keeper = FactsKeeper(facts)
    assert keeper.goaway(SERVER, h2.goaway(7, 2)[9:] + b"debug", at(1)) == (7, 2)
    assert keeper.goaway(SERVER, h2.goaway(1 << 31 | 9)[9:], at(2)) == (9, 0)  # the reserved bit
    assert keeper.goaway(SERVER, b"short", at(3)) is None
    assert [(g.last_stream_id, g.error_code) for g in facts.goaways] == [(7, 2), (9, 0)]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SETTINGS", 2)
    monkeypatch.setattr(module, "MAX_GOAWAYS", 2)
    facts = Http2Facts()
    keeper = FactsKeeper(facts)
    for i in range(5):
        keeper.settings(CLIENT, {}, at(i))
        assert keeper.goaway(SERVER, h2.goaway(i)[9:], at(i)) == (i, 0)
        keeper.acknowledged(SERVER, at(i))
    assert (len(facts.settings), len(facts.goaways)) == (2, 2)
