"""Seeded mutations of whole conversations for every decoder of this room: nothing may leave them but their result."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from netdiag.protocols import http1, socks
from netdiag.protocols.anomalies import AnomalyLog
from netdiag.protocols.dns.message import decode_message
from netdiag.protocols.dns.over_tcp import tcp_messages
from netdiag.protocols.dns.pairing import pair
from netdiag.protocols.event_body import open_event_body
from netdiag.protocols.http2 import frame_by_frame as http2
from netdiag.protocols.quic import QuicDatagram, observe
from netdiag.protocols.server_reports import read_headers
from netdiag.protocols.sniff import identify
from netdiag.records.endpoint import Endpoint
from netdiag.wire.chunk import Moment
from tests.support import h2_bytes as h2
from tests.support.dns_bytes import a, answer, message, name, pointer, record
from tests.support.http_bytes import LAST_CHUNK, chunk, chunked, head, mutate

CLIENT_HTTP1 = (
    head("POST /v1/messages?key=1 HTTP/1.1\nHost: h\nExpect: 100-continue\nTransfer-Encoding: chunked")
    + chunked(b"abc")
    + LAST_CHUNK
    + head("GET /b HTTP/1.1\nHost: h\nConnection: Upgrade\nUpgrade: websocket")
    + b"\x81\x85\1\2\3\4hello"
)
SERVER_HTTP1 = (
    head("HTTP/1.1 100 Continue")
    + head("HTTP/1.1 200 OK\nContent-Type: text/event-stream\nTransfer-Encoding: chunked\nServer-Timing: db;dur=5")
    + chunked(b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n', b": ping\n\ndata: [DONE]\n\n")
    + LAST_CHUNK
    + head("HTTP/1.1 101 Switching\nUpgrade: websocket")
    + b"\x81\5hello"
)


def conversation_h2() -> tuple[bytes, bytes]:
    """A little of everything."""
    client, server = h2.Headers(), h2.Headers()
    from_client = h2.PREFACE + h2.settings(s3=100, s4=65_535)
    from_server = h2.settings(s3=10) + h2.SETTINGS_ACK
    for i in range(1, 12, 2):
        from_client += client.frame(i, [*h2.REQUEST, ("x-n", str(i))], end_stream=i != 3)
        from_server += server.frame(i, [(":status", "200"), ("content-type", "application/grpc"), ("x-n", str(i))])
        from_server += h2.frame(h2.DATA, h2.PADDED, i, b"\3\0\0\0\0\2hi\0\0\0")
        from_server += server.frame(i, [("grpc-status", "0")], end_stream=True)
    from_client += h2.frame(h2.DATA, h2.END_STREAM, 3, b"upload") + h2.window_update(0, 1000) + h2.rst(5, 8)
    block = server.block(h2.REQUEST)
    from_server += (
        h2.frame(h2.PUSH_PROMISE, 0, 1, b"\0\0\0\2" + block[:3])
        + h2.frame(h2.CONTINUATION, 4, 1, block[3:])
        + h2.goaway(11)
    )
    return from_client, from_server


CLIENT_H2, SERVER_H2 = conversation_h2()
EVENTS = b"".join(
    b"event: x\ndata: " + json.dumps(event).encode() + b"\n\n"
    for event in (
        {"type": "message_start", "message": {"usage": {"output_tokens": 1}}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}},
        {
            "choices": [{"delta": {"content": "b", "tool_calls": [{"function": {"name": "f"}}]}}],
            "usage": {"completion_tokens": 3},
        },
        {"type": "response.completed", "response": {"usage": {"output_tokens": 5}}},
        {"candidates": [{"content": {"parts": [{"text": "c"}]}}], "usageMetadata": {"candidatesTokenCount": 2}},
        {"done": True, "eval_count": 4, "load_duration": 5},
    )
)
DNS_ANSWER = answer(
    "www.example.com", record(pointer(12), "CNAME", b"\4edge" + pointer(16)), a(name("edge.example.com"), "192.0.2.1")
)
QUIC = bytes.fromhex("c000000001088394c8f03e5157080000449e7b9aec34") + bytes(range(200))
MOMENT = Moment(0, 0, None)


def _http(decode: Callable[..., object], client: bytes, server: bytes, seed: int) -> None:
    changed = mutate(client, seed), mutate(server, seed + 1)
    gap = (seed % 7 == 0) * (seed % 40 - 8)
    cut = seed % (len(changed[1]) + 1)
    pieces = [
        chunk(changed[1][:cut], 1, packet=2),
        chunk(changed[1][cut:], 2, offset=cut, packet=3, missing_before=gap),
    ]
    decode([chunk(changed[0], 0, packet=1)], pieces)


def _events(content_type: str, octets: bytes, seed: int) -> None:
    body = open_event_body((("content-type", content_type),), "/v1/messages", AnomalyLog("x"))
    assert body is not None
    body.feed(mutate(octets, seed), MOMENT)


def _quic(seed: int) -> None:
    client, server = Endpoint("192.0.2.1", 5000), Endpoint("192.0.2.2", 443)
    observe(
        [
            QuicDatagram(mutate(QUIC, seed), client, server, 0, 1),
            QuicDatagram(mutate(QUIC, seed + 1), server, client, 1, 2),
        ]
    )


DECODERS: dict[str, Callable[[int], object]] = {
    "http1": lambda seed: _http(http1.decode, CLIENT_HTTP1, SERVER_HTTP1, seed),
    "http2": lambda seed: _http(http2.decode, CLIENT_H2, SERVER_H2, seed),
    "sse": lambda seed: _events("text/event-stream", EVENTS, seed),
    "ndjson": lambda seed: _events("application/x-ndjson", EVENTS.replace(b"event: x\ndata: ", b""), seed),
    "json": lambda seed: _events("application/json", b'{"usage":{"output_tokens":5,"queue_time":0.1}}', seed),
    "grpc": lambda seed: _events("application/grpc-web", b"\0\0\0\0\3abc\x80\0\0\0\x10grpc-status: 0\r\n", seed),
    "dns": lambda seed: decode_message(mutate(DNS_ANSWER, seed)),
    "dns over tcp": lambda seed: pair(
        tcp_messages(
            [chunk(mutate(b"\0\x1f" + message("www.example.com"), seed))], [chunk(mutate(b"\0\x60" + DNS_ANSWER, seed))]
        )
    ),
    "socks": lambda seed: socks.decode(
        [chunk(mutate(b"\5\1\0\5\1\0\3\x0bexample.com\1\xbbrest", seed))],
        [chunk(mutate(b"\5\0\5\0\0\1\1\2\3\4\0\x50", seed))],
    ),
    "sniff": lambda seed: identify(mutate(CLIENT_H2[:64], seed), mutate(SERVER_HTTP1[:64], seed)),
    "quic": _quic,
    "server reports": lambda seed: read_headers(
        (("server-timing", mutate(b'cfL4;desc="?rtt=1&x=2", a;dur=1', seed).decode("latin-1")),)
    ),
}


SLOWEST_S = 1.0


def check_decoder(decoder: str, seeds: range) -> None:
    """It raises nothing and does not hang, whatever was changed."""
    for seed in seeds:
        began = time.process_time()
        try:
            DECODERS[decoder](seed)
        except Exception as error:
            raise AssertionError(f"{decoder}, seed {seed}") from error
        assert time.process_time() - began <= SLOWEST_S, f"{decoder}, seed {seed}"


@pytest.mark.parametrize("decoder", list(DECODERS))
def test_a_few(decoder: str) -> None:
    check_decoder(decoder, range(400))


@pytest.mark.slow
@pytest.mark.parametrize("decoder", list(DECODERS))
def test_a_hundred_thousand(decoder: str) -> None:
    check_decoder(decoder, range(1000, 101_000))
