"""Calls of several attempts against the lab: redirects, retries, a server that asks for patience, forbidden addresses, proxies."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Iterator

import pytest

from netdiag.lab import Behaviour
from netdiag.probe.plan import ProbeConfig
from netdiag.probe.run import run
from netdiag.records.exchange import Outcome
from netdiag.records.recording import Recording
from tests.support.lab import StartLab
from tests.support.probing import NS_PER_MS, connection_of, probe_lab
from tests.support.threaded import Threaded


def test_redirects_are_one_row_a_hop(start_lab: StartLab) -> None:
    recording = probe_lab(start_lab(), "/v1/models?redirect=/v1/models", arms=("h1",), follow_redirects=True)
    assert [r.status for r in recording.requests] == [307, 200]
    assert [r.attempt for r in recording.requests] == [0, 1]
    (call,) = recording.calls
    assert call.attempts == (0, 1)
    assert [b.cause for b in call.backoff] == ["redirect"]
    assert recording.requests[1].reused


def test_redirects_are_not_followed_unasked(start_lab: StartLab) -> None:
    recording = probe_lab(start_lab(), "/v1/models?redirect=/v1/models", arms=("h1",))
    assert [r.status for r in recording.requests] == [307]


def test_a_redirect_loop_ends(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(redirect="/v1/models"))
    assert len(probe_lab(server, arms=("h1",), follow_redirects=True).requests) == 11


def test_credentials_stay_with_their_origin(start_lab: StartLab) -> None:
    other = start_lab(tls=False)
    first = start_lab(Behaviour(redirect=other.url + "/v1/models"), tls=False)
    recording = probe_lab(
        first,
        arms=("h1",),
        follow_redirects=True,
        headers=(("Authorization", "Bearer sk-canary0123456789"), ("X-Harmless", "1")),
    )
    heads = [c.operations[0].data.lower() for c in recording.connections]
    assert b"sk-canary" in heads[0]
    assert b"sk-canary" not in heads[1]
    assert b"x-harmless" in heads[1]


def test_a_303_becomes_get(start_lab: StartLab) -> None:
    server = start_lab()
    recording = probe_lab(
        server, "/v1/models?status=303&redirect=/v1/models", arms=("h1",), follow_redirects=True, body=b"{}"
    )
    assert [(r.method, r.status) for r in recording.requests] == [("POST", 303), ("GET", 200)]
    assert [r.request_bytes for r in recording.requests] == [2, 0]


def test_retries_as_the_policy_says(start_lab: StartLab) -> None:
    recording = probe_lab(start_lab(Behaviour(fail_first=2, fail_status=500)), arms=("h2",), policy="openai")
    assert [r.status for r in recording.requests] == [500, 500, 200]
    (call,) = recording.calls
    assert (call.policy, call.outcome) == ("openai", "ok")
    assert [b.cause for b in call.backoff] == ["computed", "computed"]
    for backoff, least_ms in zip(call.backoff, (375, 750), strict=True):
        assert backoff.planned_ns is not None
        assert least_ms * NS_PER_MS <= backoff.planned_ns <= backoff.ns < backoff.planned_ns + 100 * NS_PER_MS
    assert call.total_ns >= sum(b.ns for b in call.backoff)


def test_retry_after_ms_is_obeyed(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(fail_first=1, fail_status=429, retry_after_ms="120"))
    (call,) = probe_lab(server, arms=("h1",), policy="openai").calls
    assert [(b.cause, b.planned_ns) for b in call.backoff] == [("retry-after-ms", 120 * NS_PER_MS)]


def test_measuring_never_retries(start_lab: StartLab) -> None:
    recording = probe_lab(start_lab(Behaviour(fail_first=1)), arms=("h1",))
    assert [r.status for r in recording.requests] == [503]
    assert recording.calls[0].policy == "none"


def test_a_server_that_asks_for_patience_gets_it(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(fail_first=1, fail_status=429, retry_after="1"))
    began_s = time.monotonic()
    recording = probe_lab(server)
    assert time.monotonic() - began_s > 1.0
    assert sorted(r.status or 0 for r in recording.requests) == [200, 429]
    gap_ns = recording.requests[1].submitted_at - recording.requests[0].ended_at
    assert gap_ns > 1_000 * NS_PER_MS


def test_a_server_that_asks_for_ten_minutes_ends_the_run(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(status=429, retry_after="600"))
    began_s = time.monotonic()
    recording = probe_lab(server, trials=5)
    assert time.monotonic() - began_s < 5
    assert len(recording.requests) == 1
    assert "rate-limited" in (recording.ended_early or "")


def test_constant_refusals_end_the_run(start_lab: StartLab) -> None:
    recording = probe_lab(start_lab(Behaviour(status=503)), trials=30)
    assert len(recording.requests) < 10
    assert "rate-limited" in (recording.ended_early or "")


def test_a_round_that_the_server_breaks_is_made_again(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(fail_first=3, fail_status=503, retry_after_ms="1"))  # the uncounted round and one call
    recording = probe_lab(server, trials=3)
    assert recording.broken_rounds == 1
    assert recording.ended_early is None
    rounds = [(r.trial, r.status) for r in recording.requests]
    assert sorted(rounds[:4]) == [(0, 503), (0, 503), (1, 200), (1, 503)]
    assert rounds[4:] == [(n, 200) for n in (4, 4, 2, 2, 3, 3)]
    assert {r.arm for r in recording.requests[4:6]} == {"h1", "h2"}


def test_one_arm_alone_has_no_pairs_to_break(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(fail_first=2, fail_status=503, retry_after_ms="1"))
    recording = probe_lab(server, trials=2, arms=("h1",))
    assert [(r.trial, r.status) for r in recording.requests] == [(0, 503), (1, 503), (2, 200)]
    assert recording.broken_rounds == 0


def test_too_many_broken_rounds_end_the_run(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(status=429, retry_after_ms="1"))
    recording = probe_lab(server, arms=("h1", "h2"), trials=2)
    assert "rate-limited" in (recording.ended_early or "")
    assert recording.broken_rounds <= 3
    assert len(recording.requests) <= 8


def test_a_gap_between_calls(start_lab: StartLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netdiag.probe.pauses.GAP_S", 0.1)
    gaps = gaps_ns(probe_lab(start_lab(), trials=2))
    assert len(gaps) == 5
    assert min(gaps) >= 100 * NS_PER_MS
    assert min(gaps_ns(probe_lab(start_lab(), trials=2, idle_s=0.0))) < 100 * NS_PER_MS
    assert min(gaps_ns(probe_lab(start_lab(), arms=("h1+warm",), trials=2))) >= 100 * NS_PER_MS


def test_far_away_the_gap_is_five_round_trips(start_lab: StartLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netdiag.probe.pauses.GAP_S", 0.001)
    monkeypatch.setattr("netdiag.probe.pauses.GAP_ROUND_TRIPS", 2_000)
    recording = probe_lab(start_lab(), trials=2, arms=("h1",))
    tcp = recording.connections[0].tcp
    assert tcp is not None
    assert min(gaps_ns(recording)) >= 2_000 * (tcp.ended_at - tcp.started_at)


def gaps_ns(recording: Recording) -> list[int]:
    """From the end of each call to the beginning of the next."""
    rows = recording.requests
    return [later.submitted_at - earlier.ended_at for earlier, later in itertools.pairwise(rows)]


def test_metadata_is_not_asked() -> None:
    recording = run(ProbeConfig(urls=("http://169.254.169.254/latest/",), trials=1, arms=("h1",)))
    assert recording.requests[0].outcome is Outcome.UNREACHABLE
    assert recording.connections[0].attempts == ()


class Proxy(Threaded):
    """A forward proxy for CONNECT; notes what it was asked."""

    def __init__(self, *, status: int = 200, delay_s: float = 0.0) -> None:
        super().__init__(self._connect)
        self.asked: list[bytes] = []
        self._status, self._delay_s = status, delay_s

    def _connect(self, client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(4096)
        self.asked.append(head.split(b"\r\n")[0])
        time.sleep(self._delay_s)
        client.sendall(b"HTTP/1.1 %d Whatever\r\n\r\n" % self._status)
        if self._status != 200:
            client.close()
            return
        host, _, port = head.split()[1].rpartition(b":")
        self.tunnel(client, (host.decode(), int(port)))


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """A proxy that takes 40 ms for a CONNECT."""
    with Proxy(delay_s=0.04) as made:
        yield made


@pytest.mark.parametrize("arm", ["h1", "h2"])
def test_connect_through_a_proxy_has_its_own_phase(start_lab: StartLab, proxy: Proxy, arm: str) -> None:
    server = start_lab(Behaviour(wait_ms=20))
    recording = probe_lab(server, arms=(arm,), proxy=f"http://127.0.0.1:{proxy.port}")
    (request,) = recording.requests
    assert request.outcome is Outcome.OK, request.error
    connection = connection_of(recording, request)
    assert connection.server is not None
    assert connection.server.port == proxy.port
    assert connection.proxy is not None
    assert 40 * NS_PER_MS <= connection.proxy.ended_at - connection.proxy.started_at < 120 * NS_PER_MS
    assert connection.tls is not None
    assert connection.proxy.ended_at <= connection.tls.started_at
    assert connection.alpn == ("h2" if arm == "h2" else "http/1.1")
    assert proxy.asked == [f"CONNECT localhost:{server.port} HTTP/1.1".encode()]
    assert request.first_write_at is not None
    assert request.first_write_at > connection.tls.ended_at


def test_direct_arm_beside_the_proxied_one(start_lab: StartLab, proxy: Proxy) -> None:
    recording = probe_lab(start_lab(), arms=("h1+proxy", "h1+direct"), proxy=f"http://127.0.0.1:{proxy.port}")
    ways = {r.arm: connection_of(recording, r).proxy is not None for r in recording.requests}
    assert ways == {"h1+proxy": True, "h1+direct": False}


def test_a_proxy_that_refuses(start_lab: StartLab) -> None:
    with Proxy(status=403) as refusing:
        recording = probe_lab(start_lab(), arms=("h1",), proxy=f"http://127.0.0.1:{refusing.port}")
    (request,) = recording.requests
    assert request.outcome is Outcome.UNREACHABLE
    assert "403" in (request.error or "")
    assert request.status is None


def test_an_https_proxy(start_lab: StartLab) -> None:
    """TLS in TLS: the lab as the proxy refuses CONNECT, but only after its own handshake."""
    secure = start_lab()
    recording = probe_lab(secure, arms=("h1",), proxy=secure.url)
    (request,) = recording.requests
    assert request.outcome is not Outcome.OK
    assert recording.connections[0].tls is not None
    assert recording.connections[0].tls_error is None


def test_query_of_a_redirect_keeps_no_secret(start_lab: StartLab) -> None:
    target = "/v1/models?api_key=sk-canary0123456789"
    recording = probe_lab(start_lab(), f"/v1/models?redirect={target}", arms=("h1",), follow_redirects=True)
    assert [r.status for r in recording.requests] == [307, 200]
    assert "sk-canary" not in repr(recording)
