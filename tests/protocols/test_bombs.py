"""A megabyte made to be slow or large: no decoder may take more than five seconds or 256 MB for it."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import pytest

from netdiag.protocols import http1, socks
from netdiag.protocols.anomalies import AnomalyLog
from netdiag.protocols.dns.message import decode_message
from netdiag.protocols.dns.over_tcp import tcp_messages
from netdiag.protocols.event_body import open_event_body
from netdiag.protocols.http2 import frame_by_frame as http2
from netdiag.protocols.quic import QuicDatagram, observe
from netdiag.protocols.sniff import identify
from netdiag.records.endpoint import Endpoint
from netdiag.wire.chunk import Chunk, Moment
from tests.support import h2_bytes as h2
from tests.support.h2_bytes import frame
from tests.support.http_bytes import chunk, octet_by_octet

MEGABYTE = 1 << 20
SIZE = MEGABYTE
"""How large the inputs are made; the tests set it."""
SECONDS = 5.0
MEMORY = 256 << 20
START = h2.PREFACE + h2.settings()
GET = b"GET / HTTP/1.1\r\n\r\n"


def fill(piece: bytes, *, before: bytes = b"") -> bytes:
    """``SIZE`` octets of the same."""
    return before + piece * ((SIZE - len(before)) // len(piece))


def one(octets: bytes) -> list[Chunk]:
    return [chunk(octets)]


def both_http1(client: bytes, server: bytes = b"") -> Callable[[], object]:
    return lambda: http1.decode(one(client), one(server))


def both_http2(client: bytes, server: bytes = b"") -> Callable[[], object]:
    return lambda: http2.decode(one(client), one(server))


def events(content_type: str, octets: bytes, *, coding: str | None = None) -> Callable[[], object]:
    def run() -> object:
        fields = (("content-type", content_type), *((("content-encoding", coding),) if coding else ()))
        body = open_event_body(fields, "/v1/responses", AnomalyLog("x"))
        assert body is not None
        moment = Moment(0, 0, None)
        for i in range(0, len(octets), 1400):
            body.feed(octets[i : i + 1400], moment)
        return body

    return run


def streams(kind: int, flags: int, payload: bytes, *, step: int = 2) -> bytes:
    """A frame of one kind on ever new streams."""
    out = bytearray(START)
    stream_id = 1
    while len(out) < SIZE:
        out += frame(kind, flags, stream_id, payload)
        stream_id += step
    return bytes(out)


BIG_TABLE = b"\x3f\xe1\xff\x3f"  # table size update to 2^20

BOMBS: dict[str, Callable[[], Callable[[], object]]] = {
    "http/1 pipelined requests": lambda: both_http1(fill(GET)),
    "http/1 pipelined answers": lambda: both_http1(fill(GET), fill(b"HTTP/1.1 204 N\r\n\r\n")),
    "http/1 answers without requests": lambda: both_http1(b"", fill(b"HTTP/1.1 204 N\r\n\r\n")),
    "http/1 interim answers": lambda: both_http1(GET, fill(b"HTTP/1.1 100 C\r\n\r\n")),
    "http/1 one octet a chunk": lambda: both_http1(
        GET, fill(b"1\r\nx\r\n", before=b"HTTP/1.1 200 O\r\nTransfer-Encoding: chunked\r\n\r\n")
    ),
    "http/1 trailers": lambda: both_http1(
        GET, fill(b"a: b\r\n", before=b"HTTP/1.1 200 O\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
    ),
    "http/1 fields": lambda: both_http1(fill(b"a: b\r\n", before=b"GET / HTTP/1.1\r\n")),
    "http/1 one field": lambda: both_http1(fill(b"a", before=b"GET / HTTP/1.1\r\na: ")),
    "http/1 folded lines": lambda: both_http1(fill(b" a\r\n", before=b"GET / HTTP/1.1\r\na: b\r\n")),
    "http/1 target": lambda: both_http1(fill(b"/a", before=b"GET ")),
    "http/1 blanks": lambda: both_http1(fill(b" ", before=b"GET /")),
    "http/1 line ends": lambda: both_http1(fill(b"\r\n")),
    "http/1 zeros": lambda: both_http1(fill(b"\0"), fill(b"\0")),
    "http/1 upgrades": lambda: both_http1(
        fill(b"GET / HTTP/1.1\r\nUpgrade: h2c\r\n\r\n"), fill(b"HTTP/1.1 200 O\r\nContent-Length: 0\r\n\r\n")
    ),
    "http/1 expectations": lambda: both_http1(
        fill(b"PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"), fill(b"HTTP/1.1 417 E\r\n\r\n")
    ),
    "http/1 start-lines of chunks": lambda: (
        lambda: http1.decode([chunk(b"GET /a b\r\n", missing_before=-1)] * (SIZE // 10), [])
    ),
    "http/2 requests": lambda: both_http2(streams(h2.HEADERS, 5, b"\x82")),
    "http/2 answers": lambda: both_http2(START, streams(h2.HEADERS, 5, b"\x88")),
    "http/2 requests and resets": lambda: both_http2(
        START + b"".join(frame(h2.HEADERS, 5, i, b"\x82") + h2.rst(i, 8) for i in range(1, SIZE // 11, 2))
    ),
    "http/2 promises": lambda: both_http2(
        START,
        h2.settings()
        + b"".join(frame(h2.PUSH_PROMISE, 4, 1, i.to_bytes(4, "big") + b"\x82") for i in range(2, SIZE // 7, 2)),
    ),
    "http/2 empty data": lambda: both_http2(START, fill(frame(h2.DATA, 0, 1), before=h2.settings())),
    "http/2 data on new streams": lambda: both_http2(START, h2.settings() + streams(h2.DATA, 0, b"x")),
    "http/2 padding": lambda: both_http2(START, fill(frame(h2.DATA, 8, 1, b"\xff"), before=h2.settings())),
    "http/2 settings": lambda: both_http2(fill(h2.settings(), before=START)),
    "http/2 long settings": lambda: both_http2(START + fill(h2.settings(s4=1, s5=70000, s1=5) * 1, before=b"")),
    "http/2 windows": lambda: both_http2(fill(h2.window_update(0, 1), before=START)),
    "http/2 windows of new streams": lambda: both_http2(streams(h2.WINDOW_UPDATE, 0, b"\0\0\0\1")),
    "http/2 initial windows with many open streams": lambda: both_http2(
        START
        + b"".join(frame(h2.HEADERS, 4, i, b"\x82") + frame(h2.DATA, 0, i, b"x") for i in range(1, SIZE // 52, 2)),
        fill(h2.settings(s4=5) + h2.settings(s4=50), before=h2.settings()),
    ),
    "http/2 goaways": lambda: both_http2(
        streams(h2.HEADERS, 5, b"\x82"), fill(h2.goaway(1 << 30), before=h2.settings())
    ),
    "http/2 pings": lambda: both_http2(fill(frame(h2.PING, 0, 0, b"x" * 8), before=START)),
    "http/2 continuations": lambda: both_http2(
        fill(frame(h2.CONTINUATION, 0, 1, b""), before=START + frame(h2.HEADERS, 1, 1, b"\x82"))
    ),
    "http/2 indexed fields": lambda: both_http2(fill(frame(h2.HEADERS, 4, 1, b"\x82" * 16_000), before=START)),
    "http/2 large entries": lambda: both_http2(
        fill(frame(h2.HEADERS, 4, 1, b"\x40\x01a\x7f\x81\x1d" + b"v" * 3841 + b"\xbe" * 12_000), before=START)
    ),
    "http/2 table sizes": lambda: both_http2(fill(frame(h2.HEADERS, 4, 1, b"\x20\x3f\xe1\x1f" * 4000), before=START)),
    "http/2 a large table of small entries": lambda: both_http2(
        fill(frame(h2.HEADERS, 4, 1, BIG_TABLE + b"\x40\0\0" * 5400), before=START)
    ),
    "http/2 huffman": lambda: both_http2(
        fill(frame(h2.HEADERS, 4, 1, b"\0\x01a\xff\x81\x7e" + b"\x07" * 16_000), before=START)
    ),
    "http/2 huffman literals": lambda: both_http2(
        fill(frame(h2.HEADERS, 4, 1, (b"\0\x01a\x82\x07\xff") * 2700), before=START)
    ),
    "http/2 octet by octet": lambda: (
        lambda: http2.decode(octet_by_octet(one(streams(h2.HEADERS, 5, b"\x82")[: SIZE // 10])), [])
    ),
    "http/2 losses": lambda: (
        lambda: http2.decode(
            [chunk(frame(h2.HEADERS, 5, 2 * i + 1, b"\x82"), missing_before=-1) for i in range(SIZE // 20)], []
        )
    ),
    "sse comments": lambda: events("text/event-stream", fill(b":\n")),
    "sse events": lambda: events("text/event-stream", fill(b"data\n\n")),
    "sse json": lambda: events("text/event-stream", fill(b"data:[[[[[[[[[[[\n\n")),
    "sse one line": lambda: events("text/event-stream", fill(b"data: " + b"x" * 10)),
    "sse one event": lambda: events("text/event-stream", fill(b"data:x\n")),
    "sse carriage returns": lambda: events("text/event-stream", fill(b"\r")),
    "ndjson": lambda: events("application/x-ndjson", fill(b"\n")),
    "ndjson numbers": lambda: events("application/x-ndjson", fill(b"1\n")),
    "grpc": lambda: events("application/grpc", fill(b"\0\0\0\0\0")),
    "grpc-web trailers": lambda: events("application/grpc-web", fill(b"\x80\0\0\xff\xff" + b"a:b\r\n" * 13_107)),
    "json": lambda: events("application/json", fill(b"[")),
    "dns over tcp": lambda: (
        lambda: tcp_messages(one(fill(b"\0\x1d\0\0\1\0\0\1\0\0\0\0\0\0\3www\1a\2bc\0\0\1\0\1....")), [])
    ),
    "dns records": lambda: (
        lambda: decode_message(
            b"\0\0\x81\0\0\1\xff\xff\xff\xff\xff\xff\1a\0\0\1\0\1" + fill(b"\xc0\x0c\0\1\0\1\0\0\0\0\0\0")
        )
    ),
    "socks": lambda: lambda: socks.decode(one(fill(b"u", before=b"\4\1\0\x50\1\2\3\4")), one(b"")),
    "sniff": lambda: lambda: identify(fill(b"A"), fill(b"A")),
    "quic coalesced": lambda: (
        lambda: observe(
            [QuicDatagram(fill(b"\xc0\0\0\0\1\0\0\0\0"), Endpoint("a", 1), Endpoint("b", 443), i, i) for i in range(50)]
        )
    ),
}


@pytest.fixture
def bomb(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    """A decoder with its input, made to the size that the test asks for."""
    name, size = request.param
    monkeypatch.setitem(globals(), "SIZE", size)
    return BOMBS[name]()


def of_size(size: int) -> pytest.MarkDecorator:
    """All bombs at this size."""
    return pytest.mark.parametrize("bomb", [(name, size) for name in BOMBS], indirect=True, ids=list(BOMBS))


@of_size(MEGABYTE >> 3)
def test_time_of_an_eighth(bomb: Callable[[], object]) -> None:
    started = time.process_time()
    bomb()
    assert time.process_time() - started < SECONDS / 8 + 0.5


@pytest.mark.slow
@of_size(MEGABYTE)
def test_time(bomb: Callable[[], object]) -> None:
    started = time.process_time()
    bomb()
    assert time.process_time() - started < SECONDS


@pytest.mark.slow
@of_size(MEGABYTE)
def test_memory(bomb: Callable[[], object]) -> None:
    tracemalloc.start()
    try:
        result = bomb()
        assert tracemalloc.get_traced_memory()[1] < MEMORY
        del result
    finally:
        tracemalloc.stop()
