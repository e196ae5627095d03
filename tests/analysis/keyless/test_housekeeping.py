"""HTTP/2 told from record lengths, and its records that say nothing."""

from __future__ import annotations

import pytest

from netdiag.wire.tables import NONE
from tests.support.record_lengths import MS, TAG13, TICKETS, Record, heard, hello, sessions, waits_ms

H2_START = [
    Record("client", 22.1, 24 + 27 + 13 + TAG13),
    Record("client", 22.2, 120),
    *TICKETS,
    Record("server", 42.7, 9 + 18 + TAG13),
    Record("client", 42.8, 9 + TAG13),
    Record("server", 62.9, 9 + TAG13),
]


def test_http2_housekeeping_is_no_request_and_no_answer() -> None:
    found = heard([*hello(), *H2_START, Record("server", 200, 300), Record("server", 210, 4_000)], sessions(1, h2=NONE))
    assert found.h2.all()
    assert (found.request_first_at / MS).tolist() == [22.2]
    assert waits_ms(found) == [pytest.approx(177.8)]
    assert found.separable.all()


def answered_with_empty_data(acks: list[Record]) -> list[Record]:
    """A server that ends the stream with an empty DATA frame, as Go and Google do."""
    return [
        *hello(),
        Record("client", 22.1, 24 + 27 + 13 + TAG13),
        Record("server", 42.4, 9 + 18 + TAG13),
        *acks,
        Record("client", 42.6, 9 + TAG13),
        Record("client", 42.7, 90),
        Record("server", 70, 600),
        Record("server", 95, 9 + TAG13),
        Record("client", 150, 60),
        Record("server", 180, 300),
    ]


def test_an_empty_data_frame_ends_the_answer_once_the_settings_were_acknowledged() -> None:
    found = heard(answered_with_empty_data([Record("server", 42.5, 9 + TAG13)]), sessions(1, h2=1))
    assert (found.response_last_at / MS).tolist() == [95, 180]
    assert (found.response_end_latest_at / MS).tolist() == [95, 180]


def test_what_may_be_the_acknowledgement_or_the_end_bounds_the_answer() -> None:
    found = heard(answered_with_empty_data([]), sessions(1, h2=1))
    assert (found.response_last_at / MS).tolist() == [70, 180]
    assert (found.response_end_latest_at / MS).tolist() == [95, 180]


def test_overlapping_http2_requests_are_not_separable() -> None:
    conversation = [
        *hello(),
        *H2_START,
        Record("server", 200, 300),
        Record("client", 201, 80),
        Record("server", 205, 1_400),
        Record("server", 300, 700),
    ]
    found = heard(conversation, sessions(1, h2=NONE))
    assert found.separable.tolist() == [False]
    assert found.response_latest_at[0] / MS == 300


def test_offered_http2_without_its_traces_is_http1() -> None:
    found = heard([*hello(), Record("client", 23, 160), Record("server", 90, 600)], sessions(1, h2=NONE))
    assert not found.h2.any()
