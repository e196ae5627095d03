"""Kept connections that die: idle ones are replaced and the trial says so; one that dies in use is a failed attempt, tried again by a policy."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator

import pytest

import netdiag
from netdiag.lab import Behaviour
from netdiag.records.exchange import Outcome
from tests.support.lab import StartLab
from tests.support.probing import NS_PER_MS, config_for, probe_lab
from tests.support.threaded import Threaded

WARM = ("h1+warm", "h2+warm")


@pytest.mark.xdist_group("timing")
@pytest.mark.parametrize("arm", WARM)
def test_a_server_that_closes_idle_connections(start_lab: StartLab, arm: str) -> None:
    """The pause outlasts the server's patience, so no warm call is warm: all are left out, with the reason."""
    server = start_lab(Behaviour(wait_ms=5), idle_ms=150)
    analysis = netdiag.probe(config_for(server, arms=(arm,), trials=3, idle_s=0.6))
    answered = [e for e in analysis.exchanges if e.status is not None]
    assert [e.outcome for e in answered] == [Outcome.OK] * 4
    assert [e.reused for e in answered] == [False] * 4
    assert all({"tcp", "tls"} <= {p.name.value for p in e.phases} for e in answered)
    assert len({e.connection_id for e in answered}) == 4
    (row,) = analysis.statistics
    assert row.n == 0
    reasons = {e.reason for e in row.excluded if e.exchange_id}
    assert "warm trial on a new connection" in reasons
    assert reasons <= {"warm trial on a new connection", "closed_early"}


def test_what_the_library_sends_again_by_itself_is_an_attempt_of_its_own(start_lab: StartLab) -> None:
    """httpcore writes to an idle HTTP/2 connection before it reads the server's farewell, then asks again elsewhere."""
    server = start_lab(Behaviour(wait_ms=5), idle_ms=150)
    analysis = netdiag.probe(config_for(server, arms=("h2+warm",), trials=3, idle_s=0.6))
    lost = [e for e in analysis.exchanges if e.status is None]
    assert lost
    for exchange in lost:
        assert (exchange.outcome, exchange.reused) == (Outcome.CLOSED_EARLY, True)
        assert exchange.call_id is not None
        call = analysis.calls[exchange.call_id]
        assert [b.cause for b in call.backoff] == ["reconnect"]
        first, second = (analysis.exchanges[i] for i in call.attempts)
        assert first.id == exchange.id
        assert (second.outcome, second.reused) == (Outcome.OK, False)
        assert second.started_at >= first.ended_at


@pytest.mark.parametrize("arm", WARM)
def test_a_patient_server_keeps_them(start_lab: StartLab, arm: str) -> None:
    analysis = netdiag.probe(config_for(start_lab(Behaviour(wait_ms=5)), arms=(arm,), trials=3, idle_s=0.1))
    assert len({e.connection_id for e in analysis.exchanges}) == 1
    assert analysis.statistics[0].n == 3


class DiesWhenReused(Threaded):
    """Clear-text HTTP/1.1: the first connection answers one request and is reset at the second; later ones live."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.url = f"http://127.0.0.1:{self.port}/v1/models"
        self._first = threading.Lock()

    def _answer(self, client: socket.socket) -> None:
        dies, answered = self._first.acquire(blocking=False), 0
        with client:
            while client.recv(65_536):
                if dies and answered:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                answered += 1


@pytest.fixture
def dying() -> Iterator[DiesWhenReused]:
    """Such a server."""
    with DiesWhenReused() as server:
        yield server


def test_a_connection_that_dies_under_a_request_is_an_attempt(dying: DiesWhenReused) -> None:
    """Tried again on a new connection, and both attempts are rows; the call's total holds them and the pause between."""
    analysis = netdiag.probe(dying.url, arms=("h1+warm",), trials=2, policy="openai", capture="none", seed=1)
    call = next(c for c in analysis.calls if len(c.attempts) > 1)
    first, second = (analysis.exchanges[i] for i in call.attempts)
    assert (first.outcome, first.reused) == (Outcome.RESET, True)
    assert (second.outcome, second.reused) == (Outcome.OK, False)
    assert first.connection_id != second.connection_id
    assert [b.cause for b in call.backoff] == ["computed"]
    assert call.total_ns >= first.total_ns + call.backoff[0].ns + second.total_ns


def test_measuring_shows_it_as_a_failure(dying: DiesWhenReused) -> None:
    analysis = netdiag.probe(dying.url, arms=("h1+warm",), trials=2, capture="none", seed=1)
    assert [e.outcome for e in analysis.exchanges] == [Outcome.OK, Outcome.RESET, Outcome.OK]
    assert analysis.statistics[0].outcomes == {"ok": 2, "reset": 1}


@pytest.mark.parametrize("policy", ["none", "openai"])
def test_a_reset_is_retried_only_by_a_policy(start_lab: StartLab, policy: str) -> None:
    recording = probe_lab(start_lab(Behaviour(reset_after_bytes=0)), arms=("h1",), policy=policy)
    outcomes = [r.outcome for r in recording.requests]
    assert outcomes == [Outcome.RESET] * (1 if policy == "none" else 3)
    assert len({r.connection_id for r in recording.requests}) == len(outcomes)


@pytest.mark.parametrize("early", ["103", "100@5,103@15"])
@pytest.mark.parametrize("arm", ["h1", "h2"])
def test_interim_responses_are_listed_and_end_no_wait(start_lab: StartLab, arm: str, early: str) -> None:
    server = start_lab(Behaviour(wait_ms=60, early_status=early))
    (exchange,) = netdiag.probe(config_for(server, arms=(arm,))).exchanges
    assert [str(i.status) for i in exchange.interim] == [part.partition("@")[0] for part in early.split(",")]
    (wait_ns,) = [p.duration_ns for p in exchange.phases if p.name == "wait"]
    assert 55 * NS_PER_MS < wait_ns < 150 * NS_PER_MS
    assert exchange.status == 200
