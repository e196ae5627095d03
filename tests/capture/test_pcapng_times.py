"""Ticks of pcapng interfaces to nanoseconds, against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.capture.facts import FileFacts
from netdiag.capture.pcapng_times import LATEST, interface_nanoseconds, nanoseconds
from netdiag.wire.tables import NONE, Interface

rates = st.one_of(
    st.integers(0, 20).map(lambda power: 10**power),
    st.integers(0, 127).map(lambda power: 1 << power),
    st.just(10**127),
)
ticks = st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 2_000_000_000))
offsets = st.one_of(st.just(0), st.integers(-4_000_000_000, 4_000_000_000), st.sampled_from([2**62, -(2**62)]))


def interface(rate: int, offset_s: int = 0) -> Interface:
    return Interface(link_type=1, snap_bytes=0, ticks_per_second=rate, offset_s=offset_s)


def exact(tick: int, one: Interface) -> int:
    """Rounded down; NONE where 64 bits do not hold it."""
    since_offset = Fraction(tick * 1_000_000_000, one.ticks_per_second).__floor__()
    shift = one.offset_s * 1_000_000_000
    fits = since_offset <= LATEST and abs(shift) <= LATEST and since_offset + shift <= LATEST
    return since_offset + shift if fits else NONE


@given(st.lists(ticks, max_size=8), rates, offsets)
def test_as_exact_fractions_say(given_ticks: list[int], rate: int, offset_s: int) -> None:
    one = interface(rate, offset_s)
    found = interface_nanoseconds(np.array(given_ticks, np.uint64), one).tolist()
    for tick, instant in zip(given_ticks, found, strict=True):
        expected = exact(tick, one)
        # The last second before the year 2262 may be given up.
        assert instant == expected or (instant == NONE and expected > LATEST - 2_000_000_000)


def test_each_packet_by_its_own_interface() -> None:
    facts = FileFacts(interfaces=[interface(1_000_000), interface(1_000_000_000, offset_s=1)])
    found = nanoseconds(
        np.array([5, 5, 5, 5], np.uint64),
        np.array([0, 1, NONE, 0]),
        np.array([True, True, True, False]),
        facts,
    )
    assert found.tolist() == [5_000, 1_000_000_005, NONE, NONE]
    assert facts.anomalies == []


@pytest.mark.parametrize("interfaces", [[0, 0], [0, 1]])
def test_times_beyond_2262_are_an_anomaly(interfaces: list[int]) -> None:
    facts = FileFacts(interfaces=[interface(1), interface(1)])
    late = nanoseconds(np.array([2**40, 7], np.uint64), np.array(interfaces), np.array([True, True]), facts)
    assert late.tolist() == [NONE, 7_000_000_000]
    assert [row.reason for row in facts.anomalies] == ["1 time stamps are beyond the year 2262"]


def test_no_packets_no_times() -> None:
    nothing = np.empty(0, np.int64)
    assert not len(nanoseconds(nothing.astype(np.uint64), nothing, nothing.astype(np.bool_), FileFacts()))
