"""The order of requests on their connections."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from netdiag.analysis.request_order import idle_of, openers_of, ordinals_of
from netdiag.records.recording import ClientConnection, Span
from tests.support.client_requests import request


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 50)), max_size=12))
def test_ordinals_count_from_nought_on_each_connection(rows: list[tuple[int, int]]) -> None:
    requests = [request(i, connection_id=c, first_write_at=at) for i, (c, at) in enumerate(rows)]
    found = ordinals_of(requests)
    for connection in range(3):
        own = [r for r in requests if r.connection_id == connection]
        assert sorted(found[r.id] for r in own) == list(range(len(own)))
        by_time = sorted(own, key=lambda r: found[r.id])
        assert all((a.first_write_at or 0) <= (b.first_write_at or 0) for a, b in itertools.pairwise(by_time))


def test_a_connection_was_idle_from_the_end_of_one_request_to_the_next() -> None:
    requests = [
        request(0, first_write_at=10, ended_at=100),
        request(1, submitted_at=110, first_write_at=150, ended_at=300),
        request(2, submitted_at=200, first_write_at=210, ended_at=400),
    ]
    assert idle_of(requests) == {0: None, 1: 50, 2: None}


def test_who_waits_for_a_connection_that_another_opens_is_known() -> None:
    connection = ClientConnection(id=0, client=None, server=None, resolve=None, tcp=Span(started_at=5, ended_at=50))
    requests = [
        request(0, submitted_at=0, assigned_at=1, first_write_at=60),
        request(1, submitted_at=20, assigned_at=55, first_write_at=70, reused=True),
        request(2, submitted_at=80, assigned_at=81, first_write_at=90, reused=True),
    ]
    assert openers_of(requests, {0: connection}) == {1: 0}
