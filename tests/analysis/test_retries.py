"""Retries that a client library made by itself: told by its own marks, never guessed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import netdiag
from netdiag.analysis.retries import LIBRARY, UNKNOWN, call_of, inferred_calls, with_inferred_calls
from netdiag.records.call import AddressAttempt, Call
from netdiag.records.exchange import Exchange, Outcome
from tests.support.fabricated import exchange, ns
from tests.support.packets import pcap, tcp_conversation

SPANS = "send 1 | wait 5 | transfer 4"


def request(
    id: int, *, at_ms: float, status: int = 200, count: int | None = None, key: str | None = None, **fields: object
) -> Exchange:
    marks = {"X-Stainless-Retry-Count": count, "Idempotency-Key": key}
    row = exchange(SPANS, id=id, at_ms=at_ms)
    return replace(
        row,
        method="POST",
        path="/v1/chat/completions",
        status=status,
        outcome=Outcome.OK if status < 400 else Outcome.HTTP_ERROR,
        request_headers=tuple((name, str(value)) for name, value in marks.items() if value is not None),
        **fields,  # type: ignore[arg-type]
    )


def ids(exchanges: list[Exchange]) -> list[list[int]]:
    return [[e.id for e in call] for call in inferred_calls(exchanges)]


def test_numbered_attempts_are_one_call() -> None:
    rows = [
        request(0, at_ms=0, status=503, count=0),
        request(1, at_ms=500, status=503, count=1),
        request(2, at_ms=1500, count=2),
        request(3, at_ms=2000, count=0),
    ]
    assert ids(rows) == [[0, 1, 2]]


def test_one_key_is_one_call_however_it_is_numbered() -> None:
    rows = [
        request(0, at_ms=0, status=500, key="a", count=0),
        request(1, at_ms=10, status=500, key="b", count=0),
        request(2, at_ms=600, key="b", count=1),
        request(3, at_ms=700, key="a", count=1),
    ]
    assert ids(rows) == [[0, 3], [1, 2]]


def test_parallel_calls_are_told_apart_in_the_order_of_their_failures() -> None:
    rows = [
        request(0, at_ms=0, status=429, count=0),
        request(1, at_ms=1, status=429, count=0),
        request(2, at_ms=480, count=1),
        request(3, at_ms=490, count=1),
    ]
    assert ids(rows) == [[0, 2], [1, 3]]


@pytest.mark.parametrize(
    "second",
    [
        request(1, at_ms=500),  # a program that asks again
        request(1, at_ms=500, count=0),  # the first attempt of another call
        request(1, at_ms=500, count=2),
        request(1, at_ms=200_000, count=1),  # no library waits that long
        replace(request(1, at_ms=500, count=1), path="/v1/embeddings"),
        replace(request(1, at_ms=500, count=1), authority="other.example.com"),
    ],
)
def test_nothing_is_claimed_without_a_mark_that_fits(second: Exchange) -> None:
    assert ids([request(0, at_ms=0, status=503, count=0), second]) == []


def test_what_succeeded_is_not_tried_again() -> None:
    assert ids([request(0, at_ms=0, count=0), request(1, at_ms=500, count=1)]) == []


@pytest.mark.parametrize(
    ("headers", "gap_ms", "cause", "planned"),
    [
        ((("retry-after-ms", "300"),), 310, "retry-after-ms", ns(300)),
        ((("Retry-After", "2"),), 2010, "retry-after", ns(2000)),
        ((("retry-after", "2"),), 450, "computed", None),  # it did not obey, and its schedule shows
        ((), 400, "computed", None),
        ((), 3000, UNKNOWN, None),
    ],
)
def test_the_length_of_a_pause_says_why(
    headers: tuple[tuple[str, str], ...], gap_ms: float, cause: str, planned: int | None
) -> None:
    first = request(0, at_ms=0, status=429, count=0, response_headers=headers)
    second = request(1, at_ms=10 + gap_ms, count=1)
    call = call_of(7, [first, second])
    (backoff,) = call.backoff
    assert (backoff.ns, backoff.cause, backoff.planned_ns) == (ns(gap_ms), cause, planned)
    assert (call.inferred, call.policy, call.outcome) == (True, LIBRARY, "ok")
    assert call.total_ns == ns(20 + gap_ms)
    assert call.url == "https://api.example.com/v1/chat/completions"


def test_a_key_alone_does_not_say_who_tried_again() -> None:
    rows = [request(0, at_ms=0, status=500, key="a"), request(1, at_ms=600, key="a")]
    assert call_of(0, rows).policy == UNKNOWN


def test_exchanges_get_their_call_and_known_calls_are_put_together() -> None:
    rows = [
        request(0, at_ms=0),
        request(1, at_ms=100, status=503, count=0),
        request(2, at_ms=600, count=1),
        request(3, at_ms=700),
    ]
    race = AddressAttempt(address="192.0.2.1", port=443, started_at=0, ended_at=1, outcome="connected")
    known = [
        Call(id=i, url="https://api.example.com/", attempts=(i,), backoff=(), total_ns=1, outcome="ok", policy="none", addresses=(race,) if i == 1 else ())
        for i in range(4)
    ]  # fmt: skip
    changed, calls = with_inferred_calls(rows, known)
    assert [(call.id, call.attempts, call.inferred) for call in calls] == [
        (0, (0,), False),
        (1, (1, 2), True),
        (2, (3,), False),
    ]
    assert calls[1].addresses == (race,)
    assert {id: (row.call_id, row.attempt) for id, row in changed.items()} == {
        0: (0, 0),
        1: (1, 0),
        2: (1, 1),
        3: (2, 0),
    }


def test_without_retries_nothing_changes() -> None:
    rows = [request(0, at_ms=0, status=503, count=0), request(1, at_ms=500)]
    assert with_inferred_calls(rows) == ({}, ())


@given(
    st.lists(
        st.tuples(
            st.sampled_from([200, 429, 503]), st.sampled_from([None, 0, 1, 2, 3]), st.sampled_from([None, "a", "b"])
        ),
        max_size=12,
    )
)
def test_every_attempt_is_of_one_call_and_only_the_last_may_have_succeeded(
    told: list[tuple[int, int | None, str | None]],
) -> None:
    rows = [request(i, at_ms=100.0 * i, status=s, count=c, key=k) for i, (s, c, k) in enumerate(told)]
    calls = inferred_calls(rows)
    attempts = [e.id for call in calls for e in call]
    assert len(attempts) == len(set(attempts))
    for call in calls:
        assert len(call) > 1
        assert all(e.failed for e in call[:-1])
        assert [e.id for e in call] == sorted(e.id for e in call)


def test_a_capture_file_tells_the_call(tmp_path: Path) -> None:
    def asks(count: int) -> bytes:
        mark = b"x-stainless-retry-count: %d" % count
        return b"POST /v1/chat HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 0\r\n%s\r\n\r\n" % mark

    refusal = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    path = tmp_path / "retried.pcap"
    path.write_bytes(pcap(tcp_conversation([(0, asks(0)), (1, refusal), (0, asks(1)), (1, answer)])))
    whole = netdiag.analyze(path)
    assert [(call.attempts, call.outcome, call.inferred) for call in whole.calls] == [((0, 1), "ok", True)]
    assert [(e.call_id, e.attempt) for e in whole.exchanges] == [(0, 0), (0, 1)]
    assert [s.outcomes for s in whole.statistics] == [{"http_error": 1}, {"ok": 1}]
