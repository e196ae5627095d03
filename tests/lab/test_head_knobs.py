"""Knobs of heads, and of answers that break off, by what an independent client (httpx, curl, nghttp) meets, and by what the server says it did."""

from __future__ import annotations

import httpx
import pytest

from netdiag.lab import Behaviour
from tests.support.lab import StartLab, client_for
from tests.support.lab_clients import curl, needs_curl


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


@needs_curl
@pytest.mark.peers
@pytest.mark.parametrize(("query", "status"), [("", "0"), ("?grpc_status=8", "8")])
def test_grpc_status_in_trailers_or_head(start_lab: StartLab, query: str, status: str) -> None:
    server = start_lab()
    result = curl(server, "/llm.Chat/Once" + query, "--http2", "-d", "12345me", "-D", "-", "-o", "/dev/null")
    head, _, trailers = result.stdout.partition("\n\n")
    where = head if query else trailers or result.stdout
    assert f"grpc-status: {status}" in where.replace("\r", "")
