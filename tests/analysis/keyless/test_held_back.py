"""A body that waits for 100 (Continue)."""

from __future__ import annotations

import pytest

from netdiag.wire.tables import NONE
from tests.support.record_lengths import MS, TAG13, Record, heard, hello, sessions, waits_ms


def asked_with_expect(*, between: int = 25 + TAG13) -> list[Record]:
    return [
        *hello(),
        Record("client", 23, 180),
        Record("server", 60, between),
        Record("client", 61, 5_000),
        Record("server", 160, 300),
    ]


def test_100_continue_does_not_end_the_wait() -> None:
    found = heard(asked_with_expect())
    assert len(found) == 1
    assert waits_ms(found) == [pytest.approx(99)]


def test_its_turn_says_when_the_body_was_let_go() -> None:
    found = heard(asked_with_expect())
    moments = [found.head_last_at, found.continued_at, found.body_first_at]
    assert [moment.tolist() for moment in moments] == [[23 * MS], [60 * MS], [61 * MS]]


@pytest.mark.parametrize("between", [26 + TAG13, 400])
def test_a_record_of_another_size_is_an_answer(between: int) -> None:
    found = heard(asked_with_expect(between=between))
    assert (found.response_first_at / MS).tolist() == [60, 160]
    assert found.continued_at.tolist() == [NONE, NONE]


def test_where_the_cipher_suite_is_not_known_no_size_tells() -> None:
    found = heard(asked_with_expect(between=24), sessions(1, overhead=NONE))
    assert found.continued_at.tolist() == [NONE, NONE]
