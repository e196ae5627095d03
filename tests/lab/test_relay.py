"""The relay and the CONNECT proxy between a real client and the lab server."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from netdiag.errors import UsageError
from netdiag.lab import Behaviour, Flow, LabConfig, LabProxy, LabRelay, LabServer, ProxyConfig, RelayConfig
from tests.support.lab import StartLab, client_for, eventually

CHAT = "/v1/chat/completions"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes what a test opened."""
    with ExitStack() as opened:
        yield opened


def relayed(stack: ExitStack, server: LabServer, **settings: Any) -> LabRelay:
    """A running relay in front of a server."""
    return stack.enter_context(LabRelay(RelayConfig(target=("127.0.0.1", server.port), **settings)))


def client_through(relay: LabRelay, ca_file: str, *, http2: bool = False) -> httpx.Client:
    """A client that talks to the relay's port."""
    verify = ssl.create_default_context(cafile=ca_file)
    return httpx.Client(
        base_url=f"https://localhost:{relay.port}", verify=verify, http1=not http2, http2=http2, trust_env=False
    )


def test_delay_in_both_directions_is_a_round_trip(start_lab: StartLab, stack: ExitStack, protocol: str) -> None:
    server = start_lab()
    relay = relayed(stack, server, up=Flow(delay_ms=20), down=Flow(delay_ms=30))
    with client_through(relay, server.ca_file, http2=protocol == "h2") as client:
        client.get("/v1/models")
        started = time.perf_counter()
        client.get("/v1/models")
        assert 0.05 <= time.perf_counter() - started < 1


def test_collecting_by_time_joins_events(start_lab: StartLab, stack: ExitStack) -> None:
    server = start_lab(Behaviour(events=10, gap_ms=10), tls=False)
    relay = relayed(stack, server, down=Flow(collect_ms=60))
    httpx.post(f"{relay.url}{CHAT}", json={"stream": True}, trust_env=False)
    passed = [r for r in relay.log.of("passed") if r.facts["direction"] == "down"]
    assert len(passed) <= 4 < len(server.log.settle().exchanges()[0].events)


def test_collecting_by_size_lets_go_in_large_pieces(start_lab: StartLab, stack: ExitStack) -> None:
    server = start_lab(tls=False)
    relay = relayed(stack, server, down=Flow(collect_bytes=4000))
    assert len(httpx.get(f"{relay.url}/bytes/9000?connection_close=1", trust_env=False).content) == 9000
    sizes = [r.facts["size_bytes"] for r in relay.log.of("passed") if r.facts["direction"] == "down"]
    assert all(size >= 4000 for size in sizes[:-1])


@pytest.mark.parametrize("by", ["reset", "fin"])
def test_cut_at_an_octet(start_lab: StartLab, stack: ExitStack, by: str) -> None:
    server = start_lab(tls=False)
    relay = relayed(stack, server, down=Flow(cut_after_bytes=2000, cut_by=by))
    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        httpx.get(f"{relay.url}/bytes/5000", trust_env=False)
    eventually(lambda: relay.log.of("fault"))
    assert relay.log.of("fault")[0].facts["fault"] == "cut-down"
    assert sum(r.facts["size_bytes"] for r in relay.log.of("passed") if r.facts["direction"] == "down") == 2000


def test_silence_that_ends(start_lab: StartLab, stack: ExitStack) -> None:
    server = start_lab(tls=False)
    relay = relayed(stack, server, down=Flow(silent_after_bytes=1000, silent_ms=80))
    started = time.perf_counter()
    assert len(httpx.get(f"{relay.url}/bytes/5000", trust_env=False).content) == 5000
    assert time.perf_counter() - started >= 0.08


def test_silence_for_ever_is_the_clients_timeout(start_lab: StartLab, stack: ExitStack) -> None:
    server = start_lab(tls=False)
    relay = relayed(stack, server, down=Flow(silent_after_bytes=0))
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(f"{relay.url}/bytes/5000", timeout=0.2, trust_env=False)


def test_idle_connections_are_cut(start_lab: StartLab, stack: ExitStack) -> None:
    server = start_lab(Behaviour(wait_ms=300), tls=False)
    relay = relayed(stack, server, idle_ms=80)
    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        httpx.get(f"{relay.url}/", trust_env=False)
    eventually(lambda: relay.log.of("fault"))
    assert relay.log.of("fault")[0].facts["fault"] == "idle"


def test_a_rate_slows_a_body(start_lab: StartLab, stack: ExitStack) -> None:
    server = start_lab(tls=False)
    relay = relayed(stack, server, down=Flow(rate_kbit=4000))
    started = time.perf_counter()
    httpx.get(f"{relay.url}/bytes/50000", trust_env=False)
    assert time.perf_counter() - started >= 0.1


def test_an_edge_ends_tls_in_front_of_a_far_origin(start_lab: StartLab, stack: ExitStack, protocol: str) -> None:
    origin = start_lab(tls=False)
    edge = relayed(stack, origin, tls=LabConfig(), connect_ms=30, up=Flow(delay_ms=25), down=Flow(delay_ms=25))
    with client_through(edge, edge.ca_file, http2=protocol == "h2") as client:
        response = client.get("/v1/models")
    assert response.http_version == {"h2": "HTTP/2", "http/1.1": "HTTP/1.1"}[protocol]
    (hello,), (flight,) = edge.log.of("client-hello"), edge.log.of("server-flight")
    assert flight.at - hello.at < 25e6, "the handshake is the edge's own: no way to the origin in it"
    assert response.elapsed.total_seconds() >= 0.08


def test_a_target_that_is_not_there(stack: ExitStack) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    relay = stack.enter_context(LabRelay(RelayConfig(target=("127.0.0.1", port))))
    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError, httpx.ConnectError)):
        httpx.get(relay.url, trust_env=False)


def test_connect_proxy(start_lab: StartLab, stack: ExitStack, protocol: str) -> None:
    server = start_lab()
    proxy = stack.enter_context(LabProxy(ProxyConfig(connect_ms=60)))
    with client_for(server, protocol, proxy=proxy.url) as client:
        assert client.get("/v1/models").status_code == 200
    (asked,), (answered,) = proxy.log.of("request-last"), proxy.log.of("headers")
    assert asked.facts["path"] == f"localhost:{server.port}"
    assert answered.at - asked.at >= 60e6


@pytest.mark.parametrize("status", [403, 407, 502])
def test_a_proxy_that_refuses(start_lab: StartLab, stack: ExitStack, status: int) -> None:
    server = start_lab()
    proxy = stack.enter_context(LabProxy(ProxyConfig(refuse_with=status)))
    with client_for(server, proxy=proxy.url) as client, pytest.raises(httpx.ProxyError, match=str(status)):
        client.get("/v1/models")


@pytest.mark.parametrize("settings", [{"cut_by": "axe"}, {"rate_kbit": 0}])
def test_flows_that_cannot_be(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(settings))):
        Flow(**settings)
