"""Columns where they pay and hold; the other decoder where not."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.protocols.http2 import either
from netdiag.protocols.http2 import frame_by_frame as http2
from netdiag.protocols.http2.columns.turns import ColumnTurns
from tests.support import h2_talk


@given(st.randoms(use_true_random=False), st.sampled_from(["ordinary", "odd"]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_whichever_it_is_says_what_frame_by_frame_says(rng: random.Random, kind: str, late: bool) -> None:
    talk = (h2_talk.ordinary if kind == "ordinary" else h2_talk.odd)(rng)
    chunks = talk.chunks(cut=False, late=late)
    found, expected = either.decode(*map(iter, chunks)), http2.decode(*chunks)
    assert found is not None
    assert list(found.turns) == expected.turns
    assert (found.h2, found.anomalies) == (expected.h2, expected.anomalies)


@given(st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None)
def test_few_requests_are_not_worth_columns(rng: random.Random) -> None:
    found = either.decode(*h2_talk.ordinary(rng, most=4).chunks(cut=False, late=False))
    assert found is not None
    assert not isinstance(found.turns, ColumnTurns)
