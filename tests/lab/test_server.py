"""The server's conversations as an independent client sees them, beside what the server says it did."""

from __future__ import annotations

import time
from itertools import pairwise

from netdiag.lab import Behaviour
from tests.support.lab import StartLab, client_for


def test_starts_fast(start_lab: StartLab) -> None:
    started = time.perf_counter()
    start_lab()
    assert time.perf_counter() - started < 1.0, "measured 8 to 10 ms; the margin is for a loaded machine"


def test_waits_as_told_and_says_so(start_lab: StartLab, protocol: str) -> None:
    server = start_lab(Behaviour(wait_ms=40))
    with client_for(server, protocol) as client:
        response = client.get("/v1/models")
    (exchange,) = server.log.exchanges()
    assert response.status_code == exchange.status == 200
    assert response.http_version == {"h2": "HTTP/2", "http/1.1": "HTTP/1.1"}[protocol]
    assert exchange.wait_ns is not None
    assert 40e6 <= exchange.wait_ns < 60e6


def test_streams_events_at_their_times_one_by_one(start_lab: StartLab, protocol: str) -> None:
    server = start_lab(Behaviour(events=5, gap_ms=20))
    with (
        client_for(server, protocol) as client,
        client.stream("POST", "/v1/chat/completions", json={"stream": True}) as response,
    ):
        reads = [(time.time_ns(), line) for line in response.iter_lines() if line]
    (exchange,) = server.log.exchanges()
    assert [e.kind for e in exchange.events] == ["role", *["text"] * 5, "usage", "done"]
    assert reads[-1][1] == "data: [DONE]"
    for event, (read_at, _) in zip(exchange.events, reads, strict=True):
        assert event.scheduled_at <= event.written_at <= read_at
    texts = [e.scheduled_at for e in exchange.events if e.kind == "text"]
    assert {b - a for a, b in pairwise(texts)} == {20_000_000}


def test_secrets_in_a_target_are_not_written_down(start_lab: StartLab, protocol: str) -> None:
    server = start_lab()
    with client_for(server, protocol) as client:
        client.get("/v1/models?api_key=sk-very-secret&wait_ms=1")
    (exchange,) = server.log.settle().exchanges()
    assert exchange.path is not None
    assert "sk-very-secret" not in exchange.path
    assert "wait_ms=1" in exchange.path
