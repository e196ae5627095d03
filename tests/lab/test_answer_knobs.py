"""Knobs of what an answer is, and of hops that collect it, by what an independent client (httpx, curl, nghttp) meets, and by what the server says it did."""

from __future__ import annotations

import json

import pytest

from netdiag.lab import Behaviour
from tests.support.lab import StartLab, client_for
from tests.support.lab_clients import CHAT


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
