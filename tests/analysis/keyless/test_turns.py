"""Runs of records become requests and answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.analysis.keyless.handshake import handshake_end
from netdiag.analysis.keyless.tables import Turns
from netdiag.analysis.keyless.turns import turns
from netdiag.wire.tables import NONE
from tests.support.record_lengths import MS, TAG13, TICKETS, Record, heard, hello, sessions, table, waits_ms


def test_keep_alive_requests_are_turns_and_alerts_are_none() -> None:
    found = heard(
        [
            *hello(),
            Record("client", 23, 160),
            *TICKETS,
            Record("server", 123, 600),
            Record("client", 500, 161),
            Record("client", 501, 2_000),
            Record("server", 551, 600),
            Record("server", 560, 600),
            Record("client", 900, 19),
            Record("server", 920, 19),
        ]
    )
    assert waits_ms(found) == [pytest.approx(100), pytest.approx(50)]
    assert (found.request_first_at / MS).tolist() == [23, 500]
    assert (found.request_last_at / MS).tolist() == [23, 501]
    assert (found.response_last_at / MS).tolist() == [123, 560]
    assert found.separable.all()


def test_accepted_early_data_is_the_request() -> None:
    conversation = hello()
    conversation.insert(1, Record("client", 0.1, 200))
    conversation.insert(-1, Record("client", 21.9, 4 + TAG13))
    conversation.append(Record("server", 60, 500))
    found = heard(conversation)
    assert (found.request_first_at / MS).tolist() == [0.1]


def test_a_capture_that_begins_in_the_middle_has_turns_but_no_handshake() -> None:
    facts = sessions(1, hello_at_ms=None)
    found = heard([Record("server", 0, 700), Record("client", 10, 150), Record("server", 60, 500)], facts)
    assert found.request_first_at.tolist()[0] == NONE
    assert waits_ms(found)[1] == pytest.approx(50)
    ends = handshake_end(table([[Record("client", 10, 150)]]), facts)
    assert ends.finished_at.tolist() == [NONE]


def test_an_unanswered_request_has_no_answer_and_no_zero() -> None:
    found = heard([*hello(), Record("client", 23, 160)])
    assert found.response_first_at.tolist() == [NONE]
    assert found.response_last_at.tolist() == [NONE]


def test_no_records_no_turns() -> None:
    assert len(heard(hello())) == 0


CONVERSATION = st.lists(
    st.builds(
        Record,
        who=st.sampled_from(["client", "server"]),
        at_ms=st.integers(0, 200).map(float),
        length=st.sampled_from([1, 19, 21, 26, 30, 42, 60, 69, 81, 120, 250, 700, 1_400, 16_401]),
        type=st.sampled_from([20, 21, 22, 23, 23, 23]),
    ),
    max_size=25,
).map(lambda rows: sorted(rows, key=lambda r: r.at_ms))


@given(
    st.lists(CONVERSATION, min_size=1, max_size=4),
    st.sampled_from([0, 1, NONE]),
    st.booleans(),
    st.sampled_from([None, 20.0]),
)
def test_any_records_give_ordered_turns_and_many_connections_the_same_as_each_alone(
    conversations: list[list[Record]], h2: int, tls13: bool, hello_at_ms: float | None
) -> None:
    def found(some: list[list[Record]]) -> Turns:
        records, facts = table(some), sessions(len(some), h2=h2, tls13=tls13, hello_at_ms=hello_at_ms)
        return turns(records, facts, handshake_end(records, facts))

    together, alone = found(conversations), [found([c]) for c in conversations]
    assert together.request_first_at.tolist() == [at for each in alone for at in each.request_first_at.tolist()]
    assert together.response_last_at.tolist() == [at for each in alone for at in each.response_last_at.tolist()]
    for turn in (found([c]) for c in conversations):
        asked = turn.request_first_at[turn.request_first_at != NONE]
        assert (np.diff(asked) >= 0).all()
        both = (turn.request_last_at != NONE) & (turn.response_first_at != NONE)
        assert (turn.response_earliest_at <= turn.response_first_at)[both].all()
        assert (turn.response_first_at <= turn.response_latest_at)[both].all()
        assert (turn.response_first_at >= turn.request_first_at)[both].all()
