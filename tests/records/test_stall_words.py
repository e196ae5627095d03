"""A stall's cause in words."""

from __future__ import annotations

import pytest

from netdiag.records.stall_words import cause_word, reason
from netdiag.records.stream import StallCause, StreamStall


def stall(cause: StallCause, method: str, share: float | None = None, signs: int = 0) -> StreamStall:
    return StreamStall(
        after_event=1,
        started_at=0,
        gap_ns=100,
        usual_ns=10,
        excess_ns=90,
        shift_ns=None,
        shift_share=share,
        cause=cause,
        method=method,
        signs_of_life=signs,
    )


@pytest.mark.parametrize("cause", StallCause)
def test_every_cause_has_a_word_and_a_reason(cause: StallCause) -> None:
    one = stall(cause, "conservation", share=0.031)
    assert cause_word(one) == ("cannot tell" if cause is StallCause.UNDECIDED else str(cause))
    assert reason(one).endswith("(shift 3 %)")


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("hole", "octets waited for a lost segment"),
        ("window", "its receive window was closed"),
        ("read-lag", "the octets were here and were not read"),
        ("none", "too few events follow"),
    ],
)
def test_what_was_seen_on_the_wire_needs_no_share(method: str, words: str) -> None:
    assert reason(stall(StallCause.NETWORK, method, share=0.5)) == words


def test_signs_of_life_are_counted() -> None:
    assert reason(stall(StallCause.SERVER, "signs-of-life", signs=1)) == "1 ping arrived meanwhile"
    assert reason(stall(StallCause.SERVER, "signs-of-life", signs=3)) == "3 pings arrived meanwhile"
