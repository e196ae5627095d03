"""Where the handshake ends for the client."""

from __future__ import annotations

import pytest

from netdiag.analysis.keyless.handshake import handshake_end
from tests.support.record_lengths import (
    FINISHED,
    MS,
    RTT_MS,
    Record,
    heard,
    hello,
    sessions,
    table,
    waits_ms,
)


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
