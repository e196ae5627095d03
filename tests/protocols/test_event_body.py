"""Bodies whose events count: streamed, in one piece, and behind a content coding."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from types import SimpleNamespace

import pytest

from netdiag.protocols import http1
from netdiag.protocols.conversation import Conversation
from netdiag.protocols.turn import Turn
from netdiag.records.stream import EventKind
from netdiag.wire.chunk import Chunk
from tests.support.http_bytes import LAST_CHUNK, MS, chunked, head, stream

ASKED = stream((0, head("POST /v1/chat/completions HTTP/1.1\nHost: h\nContent-Length: 2") + b"{}"))


def answered(headers: str, *pieces: tuple[float, bytes]) -> list[Chunk]:
    return stream(
        (10, head(f"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n{headers}")),
        *[(at, chunked(p)) for at, p in pieces],
        (99, LAST_CHUNK),
    )


def decoded(server: list[Chunk]) -> Conversation:
    return http1.decode(ASKED, server)


def one(server: list[Chunk]) -> Turn:
    (turn,) = decoded(server).turns
    return turn


def flushed(compressor: zlib._Compress, text: bytes) -> bytes:
    return compressor.compress(text) + compressor.flush(zlib.Z_SYNC_FLUSH)


@pytest.mark.parametrize(("coding", "wbits"), [("gzip", 31), ("deflate", 15), ("deflate", -15)])
def test_events_behind_a_coding_have_the_moment_of_the_octets_that_gave_them(coding: str, wbits: int) -> None:
    compressor = zlib.compressobj(wbits=wbits)
    first = flushed(compressor, b'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n')
    second = flushed(compressor, b"data: [DONE]\n\n")
    server = answered(
        f"Content-Type: text/event-stream\nContent-Encoding: {coding}", (20, first[:10]), (30, first[10:]), (80, second)
    )
    turn = one(server)
    assert [(e.kind, e.deliverable_at / MS) for e in turn.events] == [(EventKind.TEXT, 30), (EventKind.DONE, 80)]
    assert turn.response_body_bytes == len(first) + len(second)


def test_several_events_in_one_compressed_piece_have_its_moment() -> None:
    compressor = zlib.compressobj(wbits=31)
    first = flushed(compressor, b"data: 1\n\ndata: 2\n\ndata: 3")
    second = flushed(compressor, b"\n\n: ping\n\n")
    turn = one(answered("Content-Type: text/event-stream\nContent-Encoding: gzip", (20, first), (80, second)))
    assert [(e.kind, e.deliverable_at / MS) for e in turn.events] == [
        (EventKind.OTHER, 20),
        (EventKind.OTHER, 20),
        (EventKind.OTHER, 80),
        (EventKind.COMMENT, 80),
    ]


def test_lines_of_json_behind_a_coding() -> None:
    packed = gzip.compress(b'{"response":"Hi","done":false}\n{"response":"","done":true,"eval_count":1}\n')
    turn = one(answered("Content-Type: application/x-ndjson\nContent-Encoding: gzip", (20, packed)))
    assert [e.kind for e in turn.events] == [EventKind.TEXT, EventKind.DONE]


def test_a_bomb_is_given_up_and_said() -> None:
    bomb = gzip.compress((b"data: " + b"x" * 1000 + b"\n\n") * 20_000)
    conversation = decoded(answered("Content-Type: text/event-stream\nContent-Encoding: gzip", (20, bomb)))
    assert "grows more than" in conversation.anomalies[0].reason
    assert len(conversation.anomalies) == 1
    assert conversation.turns[0].status == 200


def test_damage_is_given_up_and_said() -> None:
    octets = bytearray(gzip.compress(b"data: x\n\n"))
    octets[12] ^= 0xFF
    conversation = decoded(
        answered("Content-Type: text/event-stream\nContent-Encoding: gzip", (20, bytes(octets)), (30, b"more"))
    )
    assert "damaged" in conversation.anomalies[0].reason


@pytest.mark.parametrize(("coding", "why"), [("compress", "not known"), ("gzip, gzip, gzip", "more than 2")])
def test_events_that_cannot_be_read_are_said_not_to_be(coding: str, why: str) -> None:
    conversation = decoded(
        answered(f"Content-Type: text/event-stream\nContent-Encoding: {coding}", (20, b"data: x\n\n"))
    )
    assert conversation.turns[0].events == []
    (anomaly,) = conversation.anomalies
    assert anomaly.reason.startswith("events are not read: ")
    assert why in anomaly.reason


@pytest.mark.parametrize("installed", [None, SimpleNamespace(Decompressor=object)], ids=["none", "no limit"])
def test_without_the_library_the_reason_names_it(monkeypatch: pytest.MonkeyPatch, installed: object) -> None:
    monkeypatch.setitem(sys.modules, "brotli", installed)
    monkeypatch.setitem(sys.modules, "brotlicffi", None)
    conversation = decoded(answered("Content-Type: text/event-stream\nContent-Encoding: br", (20, b"x")))
    assert (
        conversation.anomalies[0].reason
        == "events are not read: their content coding br needs the package brotli, 1.2 or later"
    )
    whole = decoded(answered("Content-Type: application/json\nContent-Encoding: br", (20, b"x")))
    assert (whole.anomalies, whole.turns[0].tokens) == ([], None)


@pytest.mark.parametrize(
    ("body", "tokens", "times"),
    [
        (
            {"usage": {"completion_tokens": 42, "queue_time": 0.01, "completion_time": 0.2}},
            42,
            {"queue": 10, "generation": 200},
        ),
        ({"usage": {"output_tokens": 7}}, 7, {}),
        ({"response": "Hi", "eval_count": 9, "load_duration": 3_000_000}, 9, {"load": 3}),
        ({"usageMetadata": {"candidatesTokenCount": 5}}, 5, {}),
        ({"error": "x"}, None, {}),
    ],
)
def test_an_answer_in_one_piece_reports_its_tokens(
    body: dict[str, object], tokens: int | None, times: dict[str, int]
) -> None:
    text = json.dumps(body).encode()
    turn = one(answered("Content-Type: application/json", (20, text[:9]), (30, text[9:])))
    assert turn.tokens == tokens
    assert {t.name: t.ns / MS for t in turn.reported_times} == times
    assert (turn.events, turn.stream_api) == ([], None)


def test_times_that_groq_reports_at_the_end_of_a_stream() -> None:
    last = {
        "choices": [{"delta": {}, "finish_reason": "stop"}],
        "x_groq": {"usage": {"queue_time": 0.02, "completion_tokens": 3}},
    }
    turn = one(answered("Content-Type: text/event-stream", (20, b"data: " + json.dumps(last).encode() + b"\n\n")))
    assert [(t.name, t.ns / MS, t.source) for t in turn.reported_times] == [("queue", 20, "x_groq.usage.queue_time")]


def test_other_json_is_not_looked_at() -> None:
    asked = stream((0, head("GET /status HTTP/1.1\nHost: h")))
    (turn,) = http1.decode(
        asked, answered("Content-Type: application/json", (20, b'{"usage":{"output_tokens":7}}'))
    ).turns
    assert turn.tokens is None
