"""Connections that carried no octet: by columns as one by one."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag import api
from netdiag.analysis.exchange_columns import OUTCOMES
from netdiag.analysis.marks import Milestone
from netdiag.analysis.phase_columns import ABSENT
from netdiag.analysis.requests import requests_of
from netdiag.analysis.silent import exchanges
from netdiag.records.exchange import Outcome
from tests.support.conversation import CLIENT, SERVER, SYN_OPTIONS, Conversation, Wire, wire_of
from tests.support.packets import ACK, EPOCH_NS, FIN, RST, SYN, Timed, pcap

STEPS = {
    "SYN": (CLIENT, SYN),
    "SYN-ACK": (SERVER, SYN | ACK),
    "ACK": (CLIENT, ACK),
    "server's ACK": (SERVER, ACK),
    "client's FIN": (CLIENT, FIN | ACK),
    "server's FIN": (SERVER, FIN | ACK),
    "client's RST": (CLIENT, RST),
    "server's RST": (SERVER, RST | ACK),
}


def talk(steps: list[str], number: int, wait_ms: float = 1.0) -> list[Timed]:
    at_ns = EPOCH_NS + number * 10_000_000_000
    one = Conversation(client=("10.0.0.1", 40000 + number), at_ns=at_ns, step_ms=wait_ms)
    for step in steps:
        side, flags = STEPS[step]
        one.packet(side, flags=flags, options=SYN_OPTIONS if flags & SYN else b"")
    return one.frames


def one_by_one(wire: Wire, ends_at: int) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for i in range(len(wire.table)):
        for draft in requests_of(
            wire.connection(i), None, unopened={}, lookup=None, held_up=None, capture_ends_at=ends_at
        ):
            assert draft.ended is not None
            marks = {milestone: mark.at for milestone, mark in draft.marks.items()}
            found.append((i, draft.outcome, draft.ended.at, marks))
    return found


def by_columns(wire: Wire, ends_at: int) -> list[tuple[object, ...]]:
    table = exchanges(wire.table, np.ones(len(wire.table), np.bool_), 0, ends_at)
    marks: list[dict[Milestone, int]] = [
        {milestone: int(at[row]) for milestone, at in table.marks.items() if at[row] != ABSENT}
        for row in range(len(table))
    ]
    outcomes = [OUTCOMES[code] for code in table.outcome]
    return list(zip(table.connection.tolist(), outcomes, table.ended.tolist(), marks, strict=True))


STORIES = st.lists(
    st.tuples(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=6), st.sampled_from([0.5, 20, 1500])),
    min_size=1,
    max_size=5,
)


@given(STORIES, st.sampled_from([0, 500_000_000, 20_000_000_000]))
def test_by_columns_as_one_by_one(stories: list[tuple[list[str], float]], silence_ns: int) -> None:
    frames = [frame for number, (steps, wait) in enumerate(stories) for frame in talk(steps, number, wait)]
    wire = wire_of(frames)
    ends_at = max(at for at, _ in frames) + silence_ns
    assert by_columns(wire, ends_at) == one_by_one(wire, ends_at)


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [
        (["SYN", "server's RST"], Outcome.REFUSED),
        (["SYN", "SYN", "SYN"], Outcome.TIMEOUT_CONNECT),
        (["SYN"], Outcome.INCOMPLETE),
        (["SYN", "SYN-ACK", "ACK", "server's RST"], Outcome.RESET),
        (["SYN", "SYN-ACK", "ACK", "client's FIN", "server's FIN"], None),
        (["SYN", "SYN-ACK", "ACK"], None),
        (["ACK", "server's ACK"], None),
    ],
)
def test_what_became_of_it(steps: list[str], outcome: Outcome | None) -> None:
    frames = talk(steps, 0)
    table = by_columns(wire_of(frames), frames[-1][0])
    assert [found for _, found, _, _ in table] == ([] if outcome is None else [outcome])


def test_records_are_those_that_everybody_gets() -> None:
    frames = talk(["SYN", "server's RST"], 0) + talk(["SYN", "SYN"], 1, 1500)
    refused, silent = api.analyze(io.BytesIO(pcap(frames))).exchanges
    assert (refused.outcome, refused.outcome_detail) == (Outcome.REFUSED, "the SYN was answered with RST")
    assert (silent.outcome, silent.outcome_detail) == (Outcome.TIMEOUT_CONNECT, "2 SYN without an answer")
    assert silent.total_ns == 1_500_000_000
