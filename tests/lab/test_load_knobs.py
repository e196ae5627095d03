"""Knobs of the machine behind the server, by what an independent client (httpx, curl, nghttp) meets, and by what the server says it did."""

from __future__ import annotations

import threading
import time

from netdiag.lab import Behaviour, LabServer
from tests.support.lab import StartLab, client_for


def together(server: LabServer, count: int, path: str) -> None:
    """So many requests at once, each on a connection of its own."""

    def call() -> None:
        with client_for(server) as client:
            client.get(path)

    threads = [threading.Thread(target=call) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_more_requests_than_capacity_queue(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(wait_ms=60), capacity=1)
    together(server, 3, "/v1/models")
    queued = sorted(r.facts["queue_ns"] for r in server.log.of("work"))
    assert len(queued) == 2, "the first does not queue"
    assert 40e6 < queued[0] < queued[1]
    assert queued[1] > 100e6


def test_the_prompt_is_read_before_the_schedule(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(wait_ms=10), prefill_ms_per_kib=5)
    with client_for(server) as client:
        client.post("/v1/chat/completions", content=b"x" * 10_240)
    (exchange,) = server.log.settle().exchanges()
    assert (exchange.wait_ns or 0) >= 60e6


def test_only_the_first_request_after_idleness_is_cold(start_lab: StartLab) -> None:
    server = start_lab(cold_start_ms=60, cold_after_ms=100)
    with client_for(server) as client:
        client.get("/v1/models")
        client.get("/v1/models")
        time.sleep(0.15)
        client.get("/v1/models")
    waits = [(e.wait_ns or 0) >= 60e6 for e in server.log.settle().exchanges()]
    assert waits == [True, False, True]


def test_a_connection_stays_with_its_backend(start_lab: StartLab) -> None:
    server = start_lab(backends=(0.0, 30.0), seed=1)
    for _ in range(6):
        with client_for(server) as client:
            client.get("/v1/models")
            client.get("/v1/models")
    by_connection: dict[int, set[int]] = {}
    for row in server.log.of("work"):
        by_connection.setdefault(row.connection, set()).add(row.facts["backend"])
    assert all(len(chosen) == 1 for chosen in by_connection.values())
    assert set.union(*by_connection.values()) == {0, 1}


def test_the_senders_state_is_noted_with_each_event(start_lab: StartLab) -> None:
    server = start_lab(tcp_info=True)
    with client_for(server) as client:
        client.get("/v1/models")
    server.log.settle()
    (event,) = server.log.of("event")
    assert event.facts["cwnd"] >= 10
    assert event.facts["retransmits"] == 0
