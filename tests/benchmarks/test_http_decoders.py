"""Microseconds a request in the HTTP decoders, beside what the libraries for endpoints take for the same octets."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median

import h2.connection
import h11
import hpack
import pytest

from netdiag.protocols import http1
from netdiag.protocols.headers import make_field
from netdiag.protocols.http2 import frame_by_frame as http2
from netdiag.protocols.http2.columns import regular as h2_regular
from netdiag.protocols.http2.hpack_decoder import HpackDecoder
from netdiag.protocols.http2.section import assemble
from netdiag.wire.chunk import Chunk
from tests.support import h2_bytes as frames
from tests.support.http_bytes import chunk, head

pytestmark = pytest.mark.benchmark

REQUESTS = 20_000
RUNS = 5


def http1_octets() -> tuple[list[Chunk], list[Chunk]]:
    """Keep-alive requests with the headers of curl, answers with those of nginx."""
    client = [
        head(f"GET /item/{i} HTTP/1.1\nHost: example.com\nUser-Agent: curl/8.5.0\nAccept: */*") for i in range(REQUESTS)
    ]
    server = [
        head(
            "HTTP/1.1 200 OK\nServer: nginx\n"
            f"Date: Mon, 01 Jan 2024 00:{i // 6000:02d}:{i // 100 % 60:02d} GMT\n"
            f'Content-Type: text/plain\nContent-Length: 100\nConnection: keep-alive\nETag: "{i:x}"'
        )
        + b"x" * 100
        for i in range(REQUESTS)
    ]
    return _chunks(client, 0.0), _chunks(server, 0.5)


def http2_octets(*, alike: bool = False) -> tuple[list[Chunk], list[Chunk]]:
    """The same on streams of one connection, as the hpack library encodes it; ``alike``: every request and every answer the same."""
    client, server = frames.Headers(), frames.Headers()
    asked = [frames.PREFACE + frames.settings(s4=1 << 30) + frames.window_update(0, 1 << 30)]
    answered = [frames.settings(s3=100)]
    for i in range(REQUESTS):
        stream_id = 2 * i + 1
        what = 0 if alike else i
        asked.append(
            client.frame(
                stream_id,
                [*frames.REQUEST[:3], (":path", f"/item/{what}"), ("user-agent", "curl/8.5.0"), ("accept", "*/*")],
                end_stream=True,
            )
        )
        fields = [
            (":status", "200"),
            ("server", "nginx"),
            ("date", f"Mon, 01 Jan 2024 00:{what // 6000:02d}:{what // 100 % 60:02d} GMT"),
            ("content-type", "text/plain"),
            ("content-length", "100"),
            ("etag", f'"{what:x}"'),
        ]
        answered.append(
            server.frame(stream_id, fields) + frames.frame(frames.DATA, frames.END_STREAM, stream_id, b"x" * 100)
        )
    return _chunks(asked, 0.0), _chunks(answered, 0.5)


def _chunks(pieces: list[bytes], at_ms: float) -> list[Chunk]:
    return [chunk(piece, i + at_ms, packet=2 * i + int(2 * at_ms)) for i, piece in enumerate(pieces)]


def microseconds(work: Callable[[], object], count: int = REQUESTS) -> float:
    """Median over several runs, of CPU time."""
    taken = []
    for _ in range(RUNS):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return median(taken) / count * 1e6


def with_h11(client: list[Chunk], server: list[Chunk]) -> None:
    """The answers read by a client of h11 that made the requests itself."""
    connection = h11.Connection(h11.CLIENT)
    for asked, answered in zip(client, server, strict=True):
        target = asked.data.split(b" ", 2)[1]
        connection.send(h11.Request(method="GET", target=target, headers=[("host", "example.com")]))
        connection.send(h11.EndOfMessage())
        connection.receive_data(answered.data)
        while not isinstance(connection.next_event(), h11.EndOfMessage):
            pass
        connection.start_next_cycle()


def with_h2(client: list[Chunk]) -> None:
    """The requests read by a server of h2 (it never answers, so its settings allow every stream)."""
    connection = h2.connection.H2Connection(h2.connection.H2Configuration(client_side=False, header_encoding=None))
    connection.local_settings.max_concurrent_streams = 1 << 30
    connection.initiate_connection()
    for asked in client:
        for event in connection.receive_data(asked.data):
            if isinstance(event, h2.events.RequestReceived):
                connection.send_headers(event.stream_id, [(":status", "204")], end_stream=True)
        connection.data_to_send()


def test_microseconds_a_request(capsys: pytest.CaptureFixture[str]) -> None:
    h1_octets, h2_octets, alike = http1_octets(), http2_octets(), http2_octets(alike=True)
    blocks = [c.data[9:] for c in h2_octets[0][1:]]

    def own_hpack() -> None:
        decoder = HpackDecoder(make_field, assemble)
        for block in blocks:
            decoder.decode(block)

    def library_hpack() -> None:
        decoder = hpack.Decoder()
        for block in blocks:
            decoder.decode(block, raw=True)

    rows = [
        ("HTTP/1 request and answer, netdiag", microseconds(lambda: http1.decode(*h1_octets))),
        ("HTTP/1 answer alone, h11 (with the request it writes)", microseconds(lambda: with_h11(*h1_octets))),
        ("HTTP/2 request and answer, netdiag", microseconds(lambda: http2.decode(*h2_octets))),
        ("the same by columns", microseconds(lambda: h2_regular.decode(*h2_octets))),
        ("HTTP/2 request and answer, all alike, netdiag", microseconds(lambda: http2.decode(*alike))),
        ("the same by columns", microseconds(lambda: h2_regular.decode(*alike))),
        ("HTTP/2 request alone, h2 (with the 204 it writes)", microseconds(lambda: with_h2(h2_octets[0]))),
        ("field block of a request, netdiag", microseconds(own_hpack)),
        ("field block of a request, hpack", microseconds(library_hpack)),
    ]
    with capsys.disabled():
        sys.stdout.write("\n" + "".join(f"  {name:58} {us:8.1f} µs\n" for name, us in rows))
    assert len(http1.decode(*h1_octets).turns) == len(http2.decode(*h2_octets).turns) == REQUESTS
