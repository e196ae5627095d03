"""The record-length grammar on small conversations: who sent a record of which length, when."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.analysis.keyless import Sessions, Turns, handshake_end, turns
from netdiag.wire.tables import NONE, TlsRecords

MS = 1_000_000
TAG13 = 17
FINISHED = 69
RTT_MS = 20


class Record(NamedTuple):
    who: str
    at_ms: float
    length: int
    type: int = 23


def hello(*, at_ms: float = 0, server_flight: tuple[int, ...] = (40, 3_000, 281, FINISHED)) -> list[Record]:
    """A TLS 1.3 handshake of 22 ms seen at the client."""
    flight_at = at_ms + RTT_MS
    return [
        Record("client", at_ms, 512, 22),
        Record("server", flight_at, 122, 22),
        Record("server", flight_at, 1, 20),
        *(Record("server", flight_at + 0.01 * (i + 1), length) for i, length in enumerate(server_flight)),
        Record("client", at_ms + 22, 1, 20),
        Record("client", at_ms + 22, FINISHED),
    ]


def table(conversations: list[list[Record]]) -> TlsRecords:
    rows = []
    for connection, records in enumerate(conversations):
        for direction, who in enumerate(("client", "server")):
            offset = 0
            for record in records:
                if record.who == who:
                    rows.append((connection, direction, offset, record))
                    offset += record.length + 5
    at = np.array([int(r.at_ms * MS) for *_, r in rows], np.int64)
    packets = np.argsort(np.argsort(at, kind="stable"), kind="stable").astype(np.int64) + 1
    return TlsRecords(
        connection=np.array([c for c, *_ in rows], np.int32),
        direction=np.array([d for _, d, *_ in rows], np.uint8),
        stream_offset=np.array([o for *_, o, _ in rows], np.int64),
        content_type=np.array([r.type for *_, r in rows], np.uint8),
        version=np.full(len(rows), 0x0303, np.uint16),
        length=np.array([r.length for *_, r in rows], np.int64),
        first_packet=packets,
        last_packet=packets,
        first_seen_at=at,
        last_seen_at=at,
        deliverable_at=at,
        missing_bytes=np.zeros(len(rows), np.int64),
    )


def sessions(
    n: int,
    *,
    tls13: bool = True,
    h2: int = 0,
    overhead: int = TAG13,
    hello_at_ms: float | None = RTT_MS,
    rtt_ms: float = RTT_MS,
) -> Sessions:
    return Sessions(
        connection=np.arange(n, dtype=np.int32),
        tls13=np.full(n, tls13),
        finished_length=np.full(n, FINISHED, np.int32),
        overhead=np.full(n, overhead, np.int32),
        h2=np.full(n, h2, np.int8),
        server_hello_at=np.full(n, NONE if hello_at_ms is None else int(hello_at_ms * MS), np.int64),
        rtt_ns=np.full(n, int(rtt_ms * MS), np.int64),
    )


def heard(conversation: list[Record], facts: Sessions | None = None) -> Turns:
    records, known = table([conversation]), facts or sessions(1)
    return turns(records, known, handshake_end(records, known))


def waits_ms(found: Turns) -> list[float]:
    return [float(w) for w in (found.response_first_at - found.request_last_at) / MS]


def naive_wait_ms(conversation: list[Record]) -> float:
    """The rule of other tools: first server record after the first client record after Finished."""
    asked = next(r.at_ms for r in conversation if r.who == "client" and r.at_ms > 22)
    return next(r.at_ms for r in conversation if r.who == "server" and r.at_ms > asked) - asked


TICKETS = [Record("server", 42.5, 250), Record("server", 42.6, 250)]


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


def test_the_handshake_ends_with_the_clients_record_of_finished_size() -> None:
    with_certificate = [
        *hello()[:-1],
        Record("client", 22, 1_200),
        Record("client", 22.2, 281),
        Record("client", 22.3, FINISHED),
    ]
    records = table([hello(), with_certificate])
    ends = handshake_end(records, sessions(2))
    assert (ends.finished_at / MS).tolist() == [22, 22.3]
    assert not ends.exact.any()
    assert (ends.earliest_at == ends.finished_at).all()


def test_a_padded_finished_gives_bounds() -> None:
    padded = [*hello()[:-1], Record("client", 22, 256)]
    ends = handshake_end(table([padded]), sessions(1))
    assert (ends.earliest_at[0] / MS, ends.finished_at[0] / MS) == (RTT_MS, 22)


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


def test_100_continue_does_not_end_the_wait() -> None:
    found = heard(
        [
            *hello(),
            Record("client", 23, 180),
            Record("server", 60, 25 + TAG13),
            Record("client", 61, 5_000),
            Record("server", 160, 300),
        ]
    )
    assert len(found) == 1
    assert waits_ms(found) == [pytest.approx(99)]


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


def test_accepted_early_data_is_the_request() -> None:
    conversation = hello()
    conversation.insert(1, Record("client", 0.1, 200))
    conversation.insert(-1, Record("client", 21.9, 4 + TAG13))
    conversation.append(Record("server", 60, 500))
    found = heard(conversation)
    assert (found.request_first_at / MS).tolist() == [0.1]


def test_tls12_types_say_where_the_handshake_ends_and_false_start_may_come_before() -> None:
    conversation = [
        Record("client", 0, 200, 22),
        Record("server", 20, 3_500, 22),
        Record("client", 21, 70, 22),
        Record("client", 21, 1, 20),
        Record("client", 21, 40, 22),
        Record("client", 21.1, 190),
        Record("server", 41, 1, 20),
        Record("server", 41, 40, 22),
        Record("server", 95, 600),
    ]
    known = sessions(1, tls13=False, overhead=24)
    ends = handshake_end(table([conversation]), known)
    assert ends.finished_at[0] / MS == 41
    assert ends.exact.all()
    assert waits_ms(heard(conversation, known)) == [pytest.approx(73.9)]


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
