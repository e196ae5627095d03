"""Each knob of the server by what an independent client (httpx, curl, nghttp) meets, and by what the server says it did."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
from itertools import pairwise

import httpx
import pytest

from netdiag.errors import UsageError
from netdiag.lab import Behaviour, LabConfig, LabServer
from tests.support.lab import StartLab, client_for, eventually

CHAT = "/v1/chat/completions"
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed: no second client")
needs_nghttp = pytest.mark.skipif(shutil.which("nghttp") is None, reason="nghttp is not installed: no HTTP/2 witness")


def curl(server: LabServer, path: str, *options: str) -> subprocess.CompletedProcess[str]:
    """curl, trusting the server's authority."""
    command = ["curl", "-sS", "--cacert", server.ca_file, "--noproxy", "*", *options, server.url + path]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def kinds(text: str) -> list[str]:
    """What each SSE data line of an OpenAI stream carries."""
    out = []
    for line in text.splitlines():
        if line == ": ping":
            out.append("ping")
        if not line.startswith("data: "):
            continue
        if line == "data: [DONE]":
            out.append("done")
            continue
        document = json.loads(line[6:])
        if "error" in document:
            out.append("error")
        elif not document["choices"]:
            out.append("usage")
        else:
            out.append(
                next(k for k in ("role", "reasoning_content", "content") if k in document["choices"][0]["delta"])
            )
    return out


# --- what an answer is ---------------------------------------------------------------------------------------------


def test_openai_stream_in_the_order_of_the_knobs(start_lab: StartLab, protocol: str) -> None:
    server = start_lab(Behaviour(events=3, gap_ms=5, reasoning=2))
    with client_for(server, protocol) as client:
        text = client.post(CHAT, json={"stream": True}).text
    assert kinds(text) == [
        "role",
        "reasoning_content",
        "reasoning_content",
        "content",
        "content",
        "content",
        "usage",
        "done",
    ]


@pytest.mark.parametrize(
    ("knobs", "expected"),
    [
        ({"events": 2, "done": False}, ["role", "content", "content", "usage"]),
        ({"events": 2, "usage": False, "role_first": False}, ["content", "content", "done"]),
        ({"events": 5, "error_after": 1}, ["role", "content", "error"]),
        (
            {"events": 2, "pause_after": 1, "pause_ms": 50, "ping_ms": 20},
            ["role", "content", "ping", "ping", "content", "usage", "done"],
        ),
        ({"schedule": "0:role,5:text,5:text:300,9:ping,12:done"}, ["role", "content", "content", "ping", "done"]),
    ],
)
def test_streams_as_told(start_lab: StartLab, knobs: dict[str, object], expected: list[str]) -> None:
    server = start_lab(Behaviour(gap_ms=5, **knobs))  # type: ignore[arg-type]
    with client_for(server) as client:
        assert kinds(client.post(CHAT, json={"stream": True}).text) == expected


def test_anthropic_and_responses_shapes(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(events=2, gap_ms=1, stream=True))
    with client_for(server) as client:
        anthropic = client.post("/v1/messages", json={}).text
        responses = client.post("/v1/responses", json={}).text
    names = [line.removeprefix("event: ") for line in anthropic.splitlines() if line.startswith("event: ")]
    assert names == ["message_start", "content_block_delta", "content_block_delta", "message_delta", "message_stop"]
    assert "event: response.completed" in responses


def test_without_stream_it_is_one_document(start_lab: StartLab, protocol: str) -> None:
    server = start_lab()
    with client_for(server, protocol) as client:
        document = client.post(CHAT, json={"stream": False}).json()
    assert document["usage"]["completion_tokens"] == 8


def test_a_request_chooses_by_path_query_and_header(start_lab: StartLab) -> None:
    server = start_lab()
    with client_for(server) as client:
        client.get("/lab/wait_ms=30/v1/models")
        client.get("/v1/models?wait_ms=40")
        client.get("/v1/models", headers={"x-lab": "wait_ms=50"})
    waits = [e.wait_ns for e in server.log.settle().exchanges()]
    assert [at_least <= (w or 0) / 1e6 < 1000 for w, at_least in zip(waits, (30, 40, 50), strict=True)] == [True] * 3


def test_a_knob_that_cannot_be_is_400_with_its_name(start_lab: StartLab) -> None:
    server = start_lab()
    with client_for(server) as client:
        response = client.get("/v1/models", headers={"x-lab": "wait=30"})
    assert response.status_code == 400
    assert "'wait'" in response.json()["error"]["message"]


def test_the_first_attempts_fail(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(fail_first=2, fail_status=529, retry_after="1", should_retry="true"))
    with client_for(server) as client:
        answers = [client.post(CHAT, json={}) for _ in range(3)]
    assert [a.status_code for a in answers] == [529, 529, 200]
    assert answers[0].headers["retry-after"] == "1"
    assert answers[0].headers["x-should-retry"] == "true"


@pytest.mark.parametrize("value", ["2", "1.5", "0", "Wed, 21 Oct 2026 07:28:00 GMT", "soon"])
def test_retry_after_is_sent_as_it_is(start_lab: StartLab, protocol: str, value: str) -> None:
    server = start_lab(Behaviour(status=429, retry_after=value, rate_limits="openai:0"))
    with client_for(server, protocol) as client:
        answer = client.post(CHAT, json={})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, value)
    assert answer.headers["x-ratelimit-remaining-requests"] == "0"


def test_the_same_seed_gives_the_same_schedule(start_lab: StartLab) -> None:
    def offsets(seed: int) -> list[int]:
        server = start_lab(Behaviour(events=6, gap_ms=4, jitter_ms=3), seed=seed)
        with client_for(server) as client:
            client.post(CHAT, json={"stream": True})
        (exchange,) = server.log.settle().exchanges()
        return [e.scheduled_at - exchange.events[0].scheduled_at for e in exchange.events]

    assert offsets(1) == offsets(1) != offsets(2)


# --- hops ----------------------------------------------------------------------------------------------------------


def test_a_hop_that_collects_everything(start_lab: StartLab, protocol: str) -> None:
    server = start_lab(Behaviour(events=5, gap_ms=20, buffer_all=True))
    with client_for(server, protocol) as client:
        client.post(CHAT, json={"stream": True})
    (exchange,) = server.log.settle().exchanges()
    assert len(exchange.events) == 1
    assert (exchange.wait_ns or 0) >= 80e6


def test_a_hop_that_collects_blocks(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(events=20, gap_ms=2, buffer_bytes=1024))
    with client_for(server) as client:
        client.post(CHAT, json={"stream": True})
    (exchange,) = server.log.settle().exchanges()
    assert {e.size_bytes for e in exchange.events[:-1]} == {1024}


def test_gzip_without_flush_comes_at_the_end(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(events=5, gap_ms=10, coding="gzip", coding_flush=False))
    with client_for(server) as client:
        text = client.post(CHAT, json={"stream": True}).text
    assert kinds(text)[-1] == "done"
    (exchange,) = server.log.settle().exchanges()
    assert exchange.events[-1].size_bytes > 100
    assert len(exchange.events) <= 2


# --- heads ---------------------------------------------------------------------------------------------------------


@needs_curl
@pytest.mark.peers
@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_interim_responses(start_lab: StartLab, version: str) -> None:
    server = start_lab(Behaviour(early_status="103@10", wait_ms=40))
    result = curl(server, "/v1/models", version, "-D", "-", "-o", "/dev/null")
    assert [line.split()[1] for line in result.stdout.splitlines() if line.startswith("HTTP/")] == ["103", "200"]
    (exchange,) = server.log.settle().exchanges()
    assert exchange.headers_at is not None
    assert exchange.headers_at - exchange.interim_at[0] >= 25e6


@needs_curl
@pytest.mark.peers
def test_expect_continue_answered_late_and_ignored(start_lab: StartLab) -> None:
    late = start_lab(Behaviour(continue_ms=60))
    options = (
        "--http1.1",
        "-H",
        "Expect: 100-continue",
        "--data-binary",
        "x" * 2000,
        "-w",
        "%{time_total}",
        "-o",
        "/dev/null",
    )
    assert 0.06 <= float(curl(late, "/echo", *options).stdout) < 0.9
    (exchange,) = late.log.settle().exchanges()
    assert len(exchange.interim_at) == 1
    silent = start_lab(Behaviour(ignore_expect=True))
    assert float(curl(silent, "/echo", *options).stdout) >= 0.99, "curl gives up waiting after a second"


@needs_curl
@pytest.mark.peers
@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_redirects_are_followed(start_lab: StartLab, version: str) -> None:
    server = start_lab()
    result = curl(server, "/redirect/3", version, "-L", "-w", "%{num_redirects} %{http_code}", "-o", "/dev/null")
    assert result.stdout == "3 200"


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_framings(start_lab: StartLab, framing: str) -> None:
    server = start_lab(Behaviour(framing=framing))
    with client_for(server) as client:
        response = client.get("/bytes/5000")
    assert len(response.content) == 5000
    assert (response.headers.get("content-length") is not None) == (framing == "length")
    assert (response.headers.get("transfer-encoding") is not None) == (framing == "chunked")
    assert (response.headers.get("connection") is not None) == (framing == "close")


def test_chunks_written_in_pieces(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(write_calls=3, framing="chunked"))
    with client_for(server) as client:
        assert len(client.get("/bytes/900").content) == 900


# --- breaking off --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 1, 4999])
def test_reset_at_any_octet(start_lab: StartLab, protocol: str, at: int) -> None:
    server = start_lab(Behaviour(reset_after_bytes=at))
    with client_for(server, protocol) as client, pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        client.get("/bytes/5000")
    assert server.log.settle().exchanges()[0].fault == "reset"


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("at", [1, 2500, 4999])
def test_truncation_at_any_octet(start_lab: StartLab, protocol: str, at: int, inside: bool) -> None:
    server = start_lab(Behaviour(truncate_after_bytes=at, cut_record=inside))
    with client_for(server, protocol) as client, pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        client.get("/bytes/5000")
    assert server.log.settle().exchanges()[0].fault == "truncate"


def test_a_stall_moves_what_follows(start_lab: StartLab, protocol: str) -> None:
    server = start_lab(Behaviour(stall_after_bytes=1000, stall_ms=80))
    with client_for(server, protocol) as client:
        assert len(client.get("/bytes/5000").content) == 5000
    (exchange,) = server.log.settle().exchanges()
    assert exchange.response_last_at is not None
    assert exchange.headers_at is not None
    assert exchange.response_last_at - exchange.headers_at >= 80e6


def test_refused_stream_is_named_by_its_code(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(reset_after_bytes=0, rst_code=7))
    with (
        client_for(server, "h2") as client,
        pytest.raises(httpx.RemoteProtocolError, match=r"error_code:7|REFUSED_STREAM"),
    ):
        client.get("/v1/models")


# --- connections ---------------------------------------------------------------------------------------------------


def test_idle_connections_are_closed(start_lab: StartLab) -> None:
    server = start_lab(idle_ms=60)
    with client_for(server) as client:
        client.get("/v1/models")
        time.sleep(0.2)
        client.get("/v1/models")
    assert len(server.log.of("accept")) == 2
    assert server.log.of("close")[0].facts["reason"] == "idle"


def test_idle_http2_connections_end_with_goaway(start_lab: StartLab) -> None:
    server = start_lab(idle_ms=60)
    with client_for(server, "h2") as client:
        client.get("/v1/models")
        time.sleep(0.2)
        (goaway,), (close,) = server.log.of("goaway"), server.log.of("close")
    assert goaway.facts["last_stream_id"] == 1
    assert goaway.at <= close.at
    assert close.facts["reason"] == "idle"


@needs_curl
@pytest.mark.peers
def test_goaway_after_so_many_requests(start_lab: StartLab) -> None:
    server = start_lab(goaway_after=2)
    urls = [server.url + "/v1/models"] * 3
    result = curl(
        server, "/v1/models", "--http2", "-w", "%{http_code} ", "-o", "/dev/null", *interleaved("-o", "/dev/null", urls)
    )
    assert result.stdout == "200 " * 4
    assert [r.facts["last_stream_id"] for r in server.log.of("goaway")] == [3, 3]
    assert len(server.log.of("accept")) == 2


def interleaved(option: str, value: str, urls: list[str]) -> list[str]:
    """curl wants an output for each URL."""
    return [word for url in urls for word in (url, option, value)]


def test_connection_close_after_so_many_requests(start_lab: StartLab) -> None:
    server = start_lab(max_requests=2)
    with client_for(server) as client:
        answers = [client.get("/v1/models") for _ in range(4)]
    assert ["connection" in a.headers for a in answers] == [False, True, False, True]
    assert len(server.log.of("accept")) == 2


@needs_nghttp
@pytest.mark.peers
def test_http2_limits_are_announced(start_lab: StartLab) -> None:
    server = start_lab(max_streams=3, initial_window_bytes=1000, header_table_bytes=0)
    result = subprocess.run(
        ["nghttp", "-nv", server.url + "/v1/models"], capture_output=True, text=True, timeout=30, check=True
    )
    assert "SETTINGS_MAX_CONCURRENT_STREAMS(0x03):3" in result.stdout
    assert "SETTINGS_INITIAL_WINDOW_SIZE(0x04):1000" in result.stdout
    assert "SETTINGS_HEADER_TABLE_SIZE(0x01):0" in result.stdout
    assert ":status: 200" in result.stdout


def test_withheld_settings_hold_everything_back(start_lab: StartLab) -> None:
    server = start_lab(settings_ms=80)
    with client_for(server, "h2") as client:
        started = time.perf_counter()
        client.get("/v1/models")
    assert time.perf_counter() - started >= 0.08


def test_window_updates_held_back_slow_an_upload(start_lab: StartLab) -> None:
    server = start_lab(window_update_ms=40)
    with client_for(server, "h2") as client:
        started = time.perf_counter()
        assert len(client.post("/echo", content=b"x" * 200_000).content) == 200_000
    assert time.perf_counter() - started >= 0.08, "65,535 octets, then a wait, twice"


def test_a_shrinking_window_still_lets_the_upload_through(start_lab: StartLab) -> None:
    server = start_lab(shrink_window_to=100)
    with client_for(server, "h2") as client:
        client.get("/v1/models")
        assert client.post("/echo", content=b"x" * 3000).status_code == 200


# --- TCP and TLS ---------------------------------------------------------------------------------------------------


def test_delays_before_anything_is_read_and_before_the_flight(start_lab: StartLab) -> None:
    server = start_lab(accept_ms=40, tls_ms=50)
    with client_for(server) as client:
        client.get("/v1/models")
    (accept,), (hello,), (flight,) = (server.log.of(k) for k in ("accept", "client-hello", "server-flight"))
    assert flight.at - hello.at >= 50e6
    assert flight.at - accept.at >= 40e6


def handshake(server: LabServer, **settings: object) -> ssl.SSLSocket:
    """A bare TLS client; the caller closes it."""
    context = ssl.create_default_context(cafile=server.ca_file)
    session = settings.pop("session", None)
    for name, value in settings.items():
        setattr(context, name, value)
    raw = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    return context.wrap_socket(raw, server_hostname="localhost", session=session)  # type: ignore[arg-type]


def test_tls_1_2_only(start_lab: StartLab) -> None:
    server = start_lab(tls_maximum="1.2")
    with handshake(server) as tls:
        assert tls.version() == "TLSv1.2"


@needs_curl
@pytest.mark.peers
def test_a_group_that_nobody_guesses_costs_a_hello_retry(start_lab: StartLab) -> None:
    server = start_lab(groups="secp521r1")
    result = curl(server, "/v1/models", "--http1.1", "-v", "-o", "/dev/null")
    assert result.stderr.count("Client hello (1)") == 2
    assert len(server.log.of("server-flight")) == 2


@pytest.mark.parametrize(
    ("settings", "reused"), [({}, True), ({"tickets": 0}, False), ({"refuse_tickets": True}, False)]
)
@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_resumption(start_lab: StartLab, version: str, settings: dict[str, object], reused: bool) -> None:
    server = start_lab(tls_maximum=version, **settings)
    context = ssl.create_default_context(cafile=server.ca_file)

    def exchange(session: ssl.SSLSession | None) -> ssl.SSLSocket:
        raw = socket.create_connection(("127.0.0.1", server.port), timeout=10)
        tls = context.wrap_socket(raw, server_hostname="localhost", session=session)
        tls.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert tls.recv(4096).startswith(b"HTTP/1.1 200")
        return tls

    with exchange(None) as first, exchange(first.session) as second:
        assert second.session_reused is reused
    assert [r.facts["resumed"] for r in server.log.of("tls-done")] == [False, reused]


@pytest.mark.parametrize("size", [4000, 12000, 20000])
def test_large_certificate_chains(start_lab: StartLab, size: int) -> None:
    server = start_lab(chain_bytes=size)
    with handshake(server) as tls:
        assert tls.version() == "TLSv1.3"
    eventually(lambda: server.log.of("server-flight"))
    (flight,) = server.log.of("server-flight")
    assert size <= flight.facts["size_bytes"] <= size + 700


@pytest.mark.parametrize("how", ["close", "reset"])
def test_handshakes_that_fail(start_lab: StartLab, how: str) -> None:
    server = start_lab(fail_handshake=how)
    with client_for(server) as client, pytest.raises(httpx.ConnectError):
        client.get("/")
    eventually(lambda: server.log.of("tls-failed"))


def test_small_records(start_lab: StartLab) -> None:
    server = start_lab(record_bytes=512)
    with client_for(server) as client:
        assert len(client.get("/bytes/20000").content) == 20000
    (exchange,) = server.log.settle().exchanges()
    assert exchange.events[0].wire_bytes == 20000 + 40 * 22


def test_refused_connections(start_lab: StartLab) -> None:
    server = start_lab(refuse_first=1)
    with client_for(server) as client:
        with pytest.raises(httpx.ConnectError):
            client.get("/")
        assert client.get("/").status_code == 200


def test_clear_text_both_protocols(start_lab: StartLab, protocol: str) -> None:
    server = start_lab(tls=False)
    with client_for(server, protocol) as client:
        assert client.get("/v1/models").status_code == 200


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"groups": "no-such"}, "no-such"),
        ({"tls_minimum": "1.1"}, "1.1"),
        ({"tls_minimum": "1.3", "tls_maximum": "1.2"}, "above"),
        ({"fail_handshake": "loudly"}, "loudly"),
        ({"host": "no.such.host.invalid"}, "no.such.host.invalid"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, object], named: str) -> None:
    with pytest.raises(UsageError, match=named), LabServer(LabConfig(**settings)):  # type: ignore[arg-type]
        pass


def test_events_of_different_streams_do_not_delay_each_other(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(events=10, gap_ms=10))
    with client_for(server) as one, client_for(server) as two:
        threads = [threading.Thread(target=lambda c=c: c.post(CHAT, json={"stream": True})) for c in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for exchange in server.log.settle().exchanges():
        late = sorted(e.written_at - e.scheduled_at for e in exchange.events)
        assert late[len(late) // 2] < 5e6
        assert all(a.written_at <= b.written_at for a, b in pairwise(exchange.events))


# --- the machine behind --------------------------------------------------------------------------------------------


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


@needs_curl
@pytest.mark.peers
@pytest.mark.parametrize(("query", "status"), [("", "0"), ("?grpc_status=8", "8")])
def test_grpc_status_in_trailers_or_head(start_lab: StartLab, query: str, status: str) -> None:
    server = start_lab()
    result = curl(server, "/llm.Chat/Once" + query, "--http2", "-d", "12345me", "-D", "-", "-o", "/dev/null")
    head, _, trailers = result.stdout.partition("\n\n")
    where = head if query else trailers or result.stdout
    assert f"grpc-status: {status}" in where.replace("\r", "")
