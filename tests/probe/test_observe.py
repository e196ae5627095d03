"""An application's own client observed: httpx and httpx2, blocking and asyncio, with the application none the wiser."""

from __future__ import annotations

import asyncio
import ssl
import statistics
from collections.abc import Callable
from types import ModuleType
from typing import Any

import httpx
import pytest

import netdiag
from netdiag.capture.privileges import ability
from netdiag.errors import UsageError
from netdiag.lab import Behaviour, LabServer
from netdiag.records.exchange import Outcome
from netdiag.records.source import EvidenceLevel
from tests.support.lab import StartLab
from tests.support.probing import NS_PER_MS, children, foreign_threads, open_descriptors, settles

httpx2 = pytest.importorskip("httpx2", reason="httpx2 is not installed")
LIBRARIES = {"httpx": httpx, "httpx2": httpx2}


@pytest.fixture(params=sorted(LIBRARIES))
def library(request: pytest.FixtureRequest) -> ModuleType:
    """httpx and its successor."""
    return LIBRARIES[request.param]


def trusting(server: LabServer) -> ssl.SSLContext:
    """A context for the lab's certificate."""
    return ssl.create_default_context(cafile=server.ca_file)


def get(library: Any, server: LabServer, paths: list[str], *, is_async: bool, **options: Any) -> tuple[Any, list[int]]:
    """Ask through an observed client; the analysis and the statuses that the application saw."""
    settings = {"verify": trusting(server), "base_url": server.url, "trust_env": False} | options

    def blocking() -> tuple[Any, list[int]]:
        with library.Client(**settings) as client, netdiag.observe(client, capture="none") as seen:
            statuses = [client.get(path).status_code for path in paths]
        return seen.analysis, statuses

    async def in_a_loop() -> tuple[Any, list[int]]:
        async with library.AsyncClient(**settings) as client:
            with netdiag.observe(client, capture="none") as seen:
                statuses = [(await client.get(path)).status_code for path in paths]
        return seen.analysis, statuses

    return asyncio.run(in_a_loop()) if is_async else blocking()


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("http2", [False, True])
def test_requests_are_split(start_lab: StartLab, library: ModuleType, is_async: bool, http2: bool) -> None:
    server = start_lab(Behaviour(wait_ms=30))
    analysis, statuses = get(library, server, ["/v1/models", "/v1/models"], is_async=is_async, http2=http2)
    assert statuses == [200, 200]
    assert analysis.source.evidence_level is EvidenceLevel.L1
    assert [e.protocol for e in analysis.exchanges] == ["h2" if http2 else "http/1.1"] * 2
    assert [e.reused for e in analysis.exchanges] == [False, True]
    first, second = ({p.name.value: p.duration_ns for p in e.phases} for e in analysis.exchanges)
    assert {"tcp", "tls", "wait"} <= set(first)
    assert not {"tcp", "tls"} & set(second)
    for phases in (first, second):
        assert 28 * NS_PER_MS < phases["wait"] < 60 * NS_PER_MS


@pytest.mark.parametrize("is_async", [False, True])
def test_the_application_gets_its_own_librarys_errors(start_lab: StartLab, library: Any, is_async: bool) -> None:
    server = start_lab(Behaviour(wait_ms=2_000))
    with pytest.raises(library.ReadTimeout):
        get(library, server, ["/v1/models"], is_async=is_async, timeout=0.2)
    with pytest.raises(library.ConnectError):
        get(library, server, ["/v1/models"], is_async=is_async, base_url="https://127.0.0.1:1")


def test_a_failed_request_is_in_the_result(start_lab: StartLab, library: Any) -> None:
    server = start_lab(Behaviour(wait_ms=2_000))
    with (
        library.Client(verify=trusting(server), timeout=0.2) as client,
        netdiag.observe(client, capture="none") as seen,
        pytest.raises(library.ReadTimeout),
    ):
        client.get(server.url + "/v1/models")
    assert seen.analysis is not None
    assert [e.outcome for e in seen.analysis.exchanges] == [Outcome.TIMEOUT_READ]


@pytest.mark.parametrize("is_async", [False, True])
def test_streams(start_lab: StartLab, library: Any, is_async: bool) -> None:
    server = start_lab(Behaviour(wait_ms=20, events=6, gap_ms=20))
    body = {"stream": True, "messages": []}

    async def in_a_loop() -> Any:
        async with library.AsyncClient(verify=trusting(server)) as client:
            with netdiag.observe(client, capture="none") as seen:
                async with client.stream("POST", server.url + "/v1/chat/completions", json=body) as response:
                    assert len([line async for line in response.aiter_lines() if line]) >= 6
        return seen.analysis

    def blocking() -> Any:
        with (
            library.Client(verify=trusting(server)) as client,
            netdiag.observe(client, capture="none") as seen,
            client.stream("POST", server.url + "/v1/chat/completions", json=body) as response,
        ):
            assert len([line for line in response.iter_lines() if line]) >= 6
        return seen.analysis

    analysis = asyncio.run(in_a_loop()) if is_async else blocking()
    (exchange,) = analysis.exchanges
    assert exchange.stream is not None
    assert exchange.stream.token_events == 6
    assert 15 * NS_PER_MS < statistics.median(exchange.stream.gaps_ns) < 30 * NS_PER_MS


def test_many_at_once_in_a_loop(start_lab: StartLab, library: Any) -> None:
    server = start_lab(Behaviour(wait_ms=40))

    async def several() -> Any:
        async with library.AsyncClient(verify=trusting(server), http2=True) as client:
            with netdiag.observe(client, capture="none") as seen:
                await asyncio.gather(*(client.get(server.url + "/v1/models") for _ in range(6)))
        return seen.analysis

    analysis = asyncio.run(several())
    assert len(analysis.exchanges) == 6
    assert len({e.stream_id for e in analysis.exchanges}) == 6
    assert all(e.outcome is Outcome.OK for e in analysis.exchanges)


@pytest.mark.live
def test_with_packets(start_lab: StartLab, library: Any) -> None:
    if not ability().allowed:
        pytest.skip(f"no capture here: {ability().note}")
    server = start_lab(Behaviour(wait_ms=30))
    with library.Client(verify=trusting(server)) as client, netdiag.observe(client) as seen:
        assert client.get(server.url + "/v1/models").status_code == 200
    assert seen.analysis is not None
    assert seen.analysis.source.evidence_level is EvidenceLevel.L3
    (exchange,) = seen.analysis.exchanges
    assert exchange.clocks is not None
    assert set(exchange.clocks) == {"application", "kernel", "wire"}


def test_the_client_is_as_before_afterwards(start_lab: StartLab, library: Any) -> None:
    server = start_lab()
    context = trusting(server)
    with library.Client(verify=context) as client:
        before = (client._transport, client._transport._pool._network_backend, context.keylog_filename)
        with netdiag.observe(client, capture="none"):
            client.get(server.url + "/v1/models")
        assert (client._transport, client._transport._pool._network_backend, context.keylog_filename) == before
        assert client.get(server.url + "/v1/models").status_code == 200  # on the connection that was opened meanwhile


def test_what_the_application_says_about_its_trace_is_passed_on(start_lab: StartLab, library: Any) -> None:
    server, names = start_lab(), list[str]()
    with library.Client(verify=trusting(server)) as client, netdiag.observe(client, capture="none"):
        client.get(server.url + "/v1/models", extensions={"trace": lambda name, info: names.append(name)})
    assert "connection.connect_tcp.started" in names


def test_secrets_are_in_no_record(start_lab: StartLab, library: Any) -> None:
    server, canary = start_lab(), "sk-canary0123456789abcdef"
    with library.Client(verify=trusting(server)) as client, netdiag.observe(client, capture="none") as seen:
        client.get(server.url + f"/v1/models?api_key={canary}", headers={"Authorization": f"Bearer {canary}"})
    assert canary not in repr(seen.analysis)


def test_nothing_is_left(start_lab: StartLab) -> None:
    server = start_lab()

    def once() -> None:
        get(httpx, server, ["/v1/models"], is_async=True)
        get(httpx, server, ["/v1/models"], is_async=False)

    once()
    descriptors, processes = open_descriptors(), children()
    once()
    settles(lambda: open_descriptors() <= descriptors)
    assert children() == processes
    assert foreign_threads() == []


@pytest.mark.parametrize(
    "make", [lambda: object(), lambda: httpx.Client(transport=httpx.MockTransport(lambda request: httpx.Response(200)))]
)
def test_what_cannot_be_observed(make: Callable[[], Any]) -> None:
    with pytest.raises(UsageError), netdiag.observe(make(), capture="none"):
        pass


@pytest.mark.parametrize("is_async", [False, True])
def test_the_openai_librarys_own_client(start_lab: StartLab, is_async: bool) -> None:
    """It keeps its httpx2 client in ``_client``; nothing of the key is in the result."""
    openai = pytest.importorskip("openai", reason="openai is not installed")
    server = start_lab(Behaviour(wait_ms=20, events=5, gap_ms=15))
    settings: dict[str, Any] = {
        "api_key": "sk-canary0123456789abcdef",
        "base_url": server.url + "/v1",
        "max_retries": 0,
    }
    asked: dict[str, Any] = {"model": "lab", "messages": [{"role": "user", "content": "hi"}], "stream": True}

    async def in_a_loop() -> Any:
        http = openai.DefaultAsyncHttpxClient(verify=trusting(server))
        async with openai.AsyncOpenAI(http_client=http, **settings) as client:
            with netdiag.observe(client._client, capture="none") as seen:
                async for _ in await client.chat.completions.create(**asked):
                    pass
        return seen.analysis

    def blocking() -> Any:
        http = openai.DefaultHttpxClient(verify=trusting(server))
        with (
            openai.OpenAI(http_client=http, **settings) as client,
            netdiag.observe(client._client, capture="none") as seen,
        ):
            for _ in client.chat.completions.create(**asked):
                pass
        return seen.analysis

    analysis = asyncio.run(in_a_loop()) if is_async else blocking()
    (exchange,) = analysis.exchanges
    assert (exchange.status, exchange.path) == (200, "/v1/chat/completions")
    assert exchange.stream is not None
    assert exchange.stream.token_events == 5
    assert exchange.clocks is not None
    assert "kernel" in exchange.clocks
    assert "sk-canary" not in repr(analysis)


def test_attempts_of_the_library_that_uses_the_client_are_one_call(start_lab: StartLab, library: ModuleType) -> None:
    """As OpenAI's and Anthropic's libraries do it: the same request again, numbered."""
    server = start_lab(Behaviour(fail_first=1, fail_status=503, retry_after_ms="50"))
    with (
        library.Client(verify=trusting(server), base_url=server.url, trust_env=False) as client,
        netdiag.observe(client, capture="none") as seen,
    ):
        statuses = [
            client.get("/v1/models", headers={"x-stainless-retry-count": str(count)}).status_code for count in (0, 1)
        ]
        client.get("/v1/models")
    assert statuses == [503, 200]
    assert seen.analysis is not None
    assert [(call.id, call.attempts, call.inferred) for call in seen.analysis.calls] == [
        (0, (0, 1), True),
        (1, (2,), False),
    ]
    assert [(e.call_id, e.attempt) for e in seen.analysis.exchanges] == [(0, 0), (0, 1), (1, 0)]
    (arm,) = seen.analysis.statistics
    assert arm.n == 2
    assert arm.phases["call"].max == seen.analysis.calls[0].total_ns


@pytest.mark.parametrize("http2", [False, True])
@pytest.mark.parametrize("path", ["/v1/chat/completions?stream=true&events=50", "/v1/models?wait_ms=2000"])
def test_what_the_application_cancels_is_no_success_and_no_failure(
    start_lab: StartLab, library: ModuleType, path: str, http2: bool
) -> None:
    """``asyncio.timeout`` around a call; the server may well go on, and the wire have the whole answer."""
    server = start_lab()

    async def listen(client: Any) -> None:
        async with client.stream("GET", path) as response:
            async for _ in response.aiter_bytes():
                pass

    async def main() -> Any:
        settings: Any = {"verify": trusting(server), "base_url": server.url, "trust_env": False}
        async with library.AsyncClient(http2=http2, **settings) as client:
            with netdiag.observe(client, capture="none") as seen, pytest.raises(TimeoutError):
                await asyncio.wait_for(listen(client), 0.3)
            return seen.analysis

    analysis = asyncio.run(main())
    (row,) = analysis.exchanges
    assert (row.outcome, row.outcome_detail, row.failed) == (Outcome.INCOMPLETE, "cancelled by the application", False)
    (arm,) = analysis.statistics
    assert (arm.n, len(arm.excluded)) == (0, 1)
    assert "incomplete" in arm.excluded[0].reason
