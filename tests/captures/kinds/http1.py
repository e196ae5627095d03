"""HTTP/1: how messages are framed, what is said between them, and what a connection becomes."""

from __future__ import annotations

from collections.abc import Iterable

from tests.captures.kinds.formats import CLIENT, GET, OK, SERVER
from tests.captures.kinds.kind import in_clear, of_frames
from tests.support.h2_bytes import END_STREAM, PREFACE, SETTINGS_ACK, Headers, frame, settings
from tests.support.http_bytes import LAST_CHUNK, chunked, head
from tests.support.packets import EPOCH_NS, Timed

HOST = "Host: api.example.com"


def framing() -> Iterable[Timed]:
    """One connection for each way to end an answer."""
    in_chunks = chunked(b"one", b"two", b"three") + b"0\r\nChecksum: abc\r\n\r\n"
    conversations = {
        f"GET /chunked HTTP/1.1\n{HOST}": head("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nTrailer: Checksum")
        + in_chunks,
        f"HEAD /head HTTP/1.1\n{HOST}": head("HTTP/1.1 200 OK\nContent-Length: 5000"),
        f"DELETE /nothing HTTP/1.1\n{HOST}": head("HTTP/1.1 204 No Content"),
        f"GET /unchanged HTTP/1.1\n{HOST}": head('HTTP/1.1 304 Not Modified\nETag: "1"\nContent-Length: 5000'),
        f"GET /until-close HTTP/1.1\n{HOST}": head("HTTP/1.1 200 OK\nConnection: close") + b"as long as it lasts",
        "GET /old HTTP/1.0": head("HTTP/1.0 200 OK") + b"1996",
    }
    for number, (request, answer) in enumerate(conversations.items()):
        at_ns = EPOCH_NS + number * 10**9
        yield from in_clear(
            (0, head(request)), (1, answer), ends=(("10.0.0.1", 40000 + number), SERVER), at_ns=at_ns, closed_by=1
        )


def pipelined() -> list[Timed]:
    """Three requests in one segment; the answers follow in order."""
    return in_clear((0, GET * 3), (1, OK), (1, OK), (1, OK))


def interim() -> list[Timed]:
    """100 (Continue) before the body, 103 (Early Hints) before the answer."""
    expects = head(f"POST /upload HTTP/1.1\n{HOST}\nContent-Length: 4\nExpect: 100-continue")
    hints = head("HTTP/1.1 103 Early Hints\nLink: </a.css>; rel=preload")
    return in_clear((0, expects), (1, head("HTTP/1.1 100 Continue")), (0, b"body"), (1, hints), (1, OK))


def incomplete() -> list[Timed]:
    """The server closes after a third of what it announced."""
    return in_clear((0, GET), (1, head("HTTP/1.1 200 OK\nContent-Length: 3000") + bytes(1000)), closed_by=1)


def events(*after: bytes) -> list[Timed]:
    """Server-sent events, as a chat completion streams them; ``after`` the words."""
    start = head("HTTP/1.1 200 OK\nContent-Type: text/event-stream\nTransfer-Encoding: chunked")
    words = [b'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n' % word for word in (b"where", b" did", b" it", b" go")]
    asks = head(f"POST /v1/chat/completions HTTP/1.1\n{HOST}\nContent-Length: 15") + b'{"stream":true}'
    ends = after or (b"data: [DONE]\n\n",)
    chunks = [chunked(event) for event in (*words, *ends)]
    return in_clear((0, asks), (1, start), *((1, one) for one in chunks[:-1]), (1, chunks[-1] + LAST_CHUNK))


def broken_off() -> list[Timed]:
    """The model is overloaded after four words; the status has promised an answer long before."""
    return events(b'data: {"error":{"message":"overloaded","type":"overloaded_error"}}\n\n')


def refused_and_retried() -> list[Timed]:
    """429 with Retry-After, then success, on one connection."""
    too_many = head("HTTP/1.1 429 Too Many Requests\nRetry-After: 1\nContent-Length: 0")
    return in_clear((0, GET), (1, too_many), (0, GET), (1, OK))


def websocket() -> list[Timed]:
    """101, then frames that are no HTTP."""
    asks = head(f"GET /realtime HTTP/1.1\n{HOST}\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13")
    switches = head("HTTP/1.1 101 Switching Protocols\nConnection: Upgrade\nUpgrade: websocket")
    return in_clear((0, asks), (1, switches), (0, b"\x81\x85mask" + bytes(5)), (1, b"\x81\x05hello"))


def h2c() -> list[Timed]:
    """The connection becomes HTTP/2 with the first answer (RFC 7540 section 3.2)."""
    asks = head(
        f"GET /one HTTP/1.1\n{HOST}\nConnection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAMAAABkAAQAAP__"
    )
    switches = head("HTTP/1.1 101 Switching Protocols\nConnection: Upgrade\nUpgrade: h2c")
    server, client = Headers(), Headers()
    first = settings(s3=100) + server.frame(1, [(":status", "200")]) + frame(0, END_STREAM, 1, b"first")
    asks_again = [(":method", "GET"), (":scheme", "http"), (":authority", "api.example.com"), (":path", "/two")]
    second = PREFACE + settings(s4=65535) + SETTINGS_ACK + client.frame(3, asks_again, end_stream=True)
    answer = SETTINGS_ACK + server.frame(3, [(":status", "404")], end_stream=True)
    return in_clear((0, asks), (1, switches + first), (0, second), (1, answer))


def tunnel() -> list[Timed]:
    """CONNECT to a proxy, then HTTP in clear through the tunnel."""
    connect = head("CONNECT api.example.com:80 HTTP/1.1\nHost: api.example.com:80\nProxy-Authorization: Basic bm9ib2R5")
    return in_clear(
        (0, connect),
        (1, head("HTTP/1.1 200 Connection established")),
        (0, GET),
        (1, OK),
        ends=(CLIENT, ("10.0.0.2", 3128)),
    )


def socks() -> list[Timed]:
    """SOCKS version 5 with a name, then HTTP in clear."""
    name = b"api.example.com"
    asks = b"\5\1\0\3" + bytes((len(name),)) + name + b"\0\x50"
    opened = b"\5\0\0\1\x0a\0\0\x02\0\x50"
    return in_clear(
        (0, b"\5\1\0"), (1, b"\5\0"), (0, asks), (1, opened), (0, GET), (1, OK), ends=(CLIENT, ("10.0.0.2", 1080))
    )


def behind_a_balancer() -> list[Timed]:
    """A load balancer's PROXY protocol line before the request."""
    return in_clear((0, b"PROXY TCP4 198.51.100.7 10.0.0.2 55555 80\r\n" + GET), (1, OK))


def no_http() -> list[Timed]:
    """Something else on port 80."""
    return in_clear((1, b"220 mail.example.com ESMTP\r\n"), (0, b"EHLO client\r\n"), (1, b"250 mail.example.com\r\n"))


KINDS = (
    of_frames("http1-framing", "chunked, HEAD, 204, 304, until close, HTTP/1.0", framing),
    of_frames("http1-pipelined", "three requests at once", pipelined),
    of_frames("http1-interim", "100 (Continue) and 103 (Early Hints)", interim),
    of_frames("http1-incomplete", "fewer octets than announced", incomplete),
    of_frames("http1-events", "a streamed chat completion", events),
    of_frames("http1-error-event", "a stream that ends with an error event", broken_off),
    of_frames("http1-429", "429 with Retry-After, then success", refused_and_retried),
    of_frames("http1-websocket", "an upgrade to WebSocket", websocket),
    of_frames("http1-h2c", "an upgrade to HTTP/2", h2c),
    of_frames("proxy-connect", "a tunnel through a proxy", tunnel),
    of_frames("proxy-socks", "a tunnel by SOCKS 5", socks),
    of_frames("proxy-protocol", "a load balancer says who the client was", behind_a_balancer),
    of_frames("no-http", "another protocol", no_http),
)
