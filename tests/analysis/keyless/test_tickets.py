"""Session tickets come early and are no answer."""

from __future__ import annotations

import pytest

from tests.support.record_lengths import MS, TICKETS, Record, heard, hello, sessions, waits_ms


def naive_wait_ms(conversation: list[Record]) -> float:
    """The rule of other tools: first server record after the first client record after Finished."""
    asked = next(r.at_ms for r in conversation if r.who == "client" and r.at_ms > 22)
    return next(r.at_ms for r in conversation if r.who == "server" and r.at_ms > asked) - asked


def test_tickets_are_no_answer_and_the_naive_rule_is_wrong_by_an_order_of_magnitude() -> None:
    conversation = [
        *hello(),
        Record("client", 22.4, 160),
        *TICKETS,
        Record("server", 293.4, 400),
        Record("server", 300, 4_000),
    ]
    assert waits_ms(heard(conversation)) == [pytest.approx(271)]
    assert naive_wait_ms(conversation) == pytest.approx(20.1)


def test_on_a_short_path_the_naive_rule_is_wrong_by_two_orders_of_magnitude() -> None:
    """A request 0.3 ms after Finished, tickets 0.3 ms later, the answer after 251 ms (as seen in a capture)."""
    conversation = [*hello(), Record("client", 22.1, 160), Record("server", 22.4, 250), Record("server", 22.5, 250)]
    conversation.append(Record("server", 273.1, 900))
    assert waits_ms(heard(conversation, sessions(1, rtt_ms=0.05))) == [pytest.approx(251)]
    assert naive_wait_ms(conversation) == pytest.approx(0.3)


def test_the_second_ticket_may_come_a_delayed_ack_later() -> None:
    conversation = [*hello(), Record("client", 23, 160), Record("server", 42.2, 250), Record("server", 84.2, 250)]
    conversation.append(Record("server", 300, 900))
    assert waits_ms(heard(conversation)) == [pytest.approx(277)]


def test_a_lone_ticket_bounds_the_wait() -> None:
    found = heard([*hello(), Record("client", 23, 160), Record("server", 43, 230), Record("server", 150, 900)])
    assert waits_ms(found) == [pytest.approx(127)]
    assert found.response_earliest_at[0] / MS == 43


def test_tickets_of_a_busy_server_come_late_and_bound_the_wait() -> None:
    """Two equal records 60 ms after the handshake, the answer's short head 53 ms later (as seen on a busy server)."""
    tickets = [Record("server", 83, 250), Record("server", 83.1, 250)]
    found = heard(
        [*hello(), Record("client", 23, 160), *tickets, Record("server", 136, 129), Record("server", 136.2, 900)]
    )
    assert waits_ms(found) == [pytest.approx(113)]
    assert found.response_earliest_at[0] / MS == pytest.approx(83)


def test_a_short_answer_alone_is_the_answer() -> None:
    assert waits_ms(heard([*hello(), Record("client", 23, 160), Record("server", 43, 230)])) == [pytest.approx(20)]


def test_a_bulk_answer_in_equal_records_is_no_run_of_tickets() -> None:
    bulk = [Record("server", 43 + i, 1_400) for i in range(9)]
    found = heard([*hello(), Record("client", 23, 160), *bulk])
    assert waits_ms(found) == [pytest.approx(20)]
    assert found.response_last_at[0] / MS == 51
