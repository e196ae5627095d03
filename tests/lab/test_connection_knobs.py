"""Knobs of connections and HTTP/2, by what an independent client (httpx, curl, nghttp) meets, and by what the server says it did."""

from __future__ import annotations

import shutil
import subprocess
import time

import pytest

from tests.support.lab import StartLab, client_for
from tests.support.lab_clients import curl, needs_curl

needs_nghttp = pytest.mark.skipif(shutil.which("nghttp") is None, reason="nghttp is not installed: no HTTP/2 witness")


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
