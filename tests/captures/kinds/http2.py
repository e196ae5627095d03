"""HTTP/2 by prior knowledge: every frame type, and what can go wrong."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tests.captures.kinds.kind import Kind, in_clear, of_frames
from tests.support.h2_bytes import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PADDED,
    PING,
    PREFACE,
    PUSH_PROMISE,
    SETTINGS_ACK,
    Headers,
    frame,
    goaway,
    rst,
    settings,
    window_update,
)
from tests.support.packets import Timed, pcap

ENDS = ("10.0.0.1", 40000), ("10.0.0.2", 8080)
OPENING = PREFACE + settings(s4=65535)


def asks(path: str, method: str = "GET", *more: tuple[str, str]) -> list[tuple[str, str]]:
    """A request's fields."""
    return [(":method", method), (":scheme", "http"), (":authority", "api.example.com"), (":path", path), *more]


def answers(status: int, *more: tuple[str, str]) -> Sequence[tuple[str, str]]:
    """A response's fields."""
    return [(":status", str(status)), *more]


def streams() -> list[Timed]:
    """Three streams at once; their answers are interleaved."""
    client, server = Headers(), Headers()
    requests = OPENING + b"".join(client.frame(n, asks(f"/{n}"), end_stream=True) for n in (1, 3, 5))
    heads = settings(s3=100) + SETTINGS_ACK + b"".join(server.frame(n, answers(200)) for n in (5, 1, 3))
    first = b"".join(frame(DATA, 0, n, b"x" * 100) for n in (1, 3, 5))
    last = b"".join(frame(DATA, END_STREAM, n, b"y" * 100) for n in (3, 5, 1))
    return in_clear((0, requests), (1, heads), (0, SETTINGS_ACK), (1, first), (1, last), ends=ENDS)


def odd_frames() -> list[Timed]:
    """A field section in three pieces, padding, trailers, a ping and an unknown frame type."""
    client, server = Headers(), Headers()
    block = client.block(asks("/in-pieces", "POST", ("x-long", "v" * 60)))
    pieces = [block[:20], block[20:40], block[40:]]
    request = (
        OPENING
        + frame(HEADERS, 0, 1, pieces[0])
        + frame(CONTINUATION, 0, 1, pieces[1])
        + frame(CONTINUATION, END_HEADERS, 1, pieces[2])
        + frame(DATA, END_STREAM | PADDED, 1, b"\x0a" + b"the body" + bytes(10))
    )
    answer = settings() + SETTINGS_ACK + frame(0xFE, 0, 1, b"not known") + frame(PING, 0, 0, b"12345678")
    answer += server.frame(1, answers(200)) + frame(DATA, PADDED, 1, b"\x04" + b"answer" + bytes(4))
    trailers = server.frame(1, [("checksum", "abc")], end_stream=True)
    return in_clear(
        (0, request), (1, answer), (0, SETTINGS_ACK + frame(PING, 1, 0, b"12345678")), (1, trailers), ends=ENDS
    )


def pushed() -> list[Timed]:
    """The server promises a second answer and sends it."""
    client, server = Headers(), Headers()
    promise = frame(PUSH_PROMISE, END_HEADERS, 1, struct.pack(">I", 2) + server.block(asks("/style.css")))
    first = settings() + SETTINGS_ACK + promise + server.frame(1, answers(200)) + frame(DATA, END_STREAM, 1, b"page")
    second = server.frame(2, answers(200)) + frame(DATA, END_STREAM, 2, b"style")
    return in_clear((0, OPENING + client.frame(1, asks("/"), end_stream=True)), (1, first), (1, second), ends=ENDS)


def given_up() -> list[Timed]:
    """A stream that the client cancels, one that the server refuses, and GOAWAY below a third."""
    client, server = Headers(), Headers()
    requests = OPENING + b"".join(client.frame(n, asks(f"/{n}"), end_stream=True) for n in (1, 3, 5))
    begun = settings() + SETTINGS_ACK + server.frame(1, answers(200)) + frame(DATA, 0, 1, b"x" * 50)
    return in_clear((0, requests), (1, begun), (0, SETTINGS_ACK + rst(1, 8)), (1, rst(3, 7)), (1, goaway(3)), ends=ENDS)


def window_limited() -> list[Timed]:
    """The answer fills the stream's window and waits for the client to open it."""
    client, server = Headers(), Headers()
    request = PREFACE + settings(s4=400) + client.frame(1, asks("/large"), end_stream=True)
    part = settings() + SETTINGS_ACK + server.frame(1, answers(200)) + frame(DATA, 0, 1, bytes(400))
    opens = SETTINGS_ACK + window_update(1, 400)
    turns = (0, request), (1, part), (0, opens), (1, frame(DATA, END_STREAM, 1, bytes(400)))
    return in_clear(*turns, ends=ENDS, pause_ns=0)


def upload_limited() -> list[Timed]:
    """The request's body fills the server's window and waits for the server to open it."""
    client, server = Headers(), Headers()
    announced = settings(s4=400) + SETTINGS_ACK
    begun = SETTINGS_ACK + client.frame(1, asks("/large", "POST")) + frame(DATA, 0, 1, bytes(400))
    rest = frame(DATA, END_STREAM, 1, bytes(400))
    answer = server.frame(1, answers(200), end_stream=True)
    turns = (0, OPENING), (1, announced), (0, begun), (1, window_update(1, 400)), (0, rest), (1, answer)
    return in_clear(*turns, ends=ENDS)


def grpc() -> list[Timed]:
    """A unary call that ends well and one that fails: the status is in the trailers."""
    client, server = Headers(), Headers()
    kind = ("content-type", "application/grpc")
    message = b"\0" + struct.pack(">I", 5) + b"hello"
    call = client.frame(1, asks("/lab.Chat/Ask", "POST", kind, ("te", "trailers"))) + frame(
        DATA, END_STREAM, 1, message
    )
    good = settings() + SETTINGS_ACK + server.frame(1, answers(200, kind)) + frame(DATA, 0, 1, message)
    good += server.frame(1, [("grpc-status", "0")], end_stream=True)
    again = client.frame(3, asks("/lab.Chat/Ask", "POST", kind, ("te", "trailers"))) + frame(
        DATA, END_STREAM, 3, message
    )
    bad = server.frame(3, answers(200, kind, ("grpc-status", "14"), ("grpc-message", "no%20backend")), end_stream=True)
    return in_clear((0, OPENING + call), (1, good), (0, SETTINGS_ACK + again), (1, bad), ends=ENDS)


def extended_connect() -> list[Timed]:
    """A WebSocket on a stream (RFC 8441)."""
    client, server = Headers(), Headers()
    fields = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", "/realtime"),
        (":authority", "api.example.com"),
    ]
    request = OPENING + client.frame(1, fields)
    opened = settings(s8=1) + SETTINGS_ACK + server.frame(1, answers(200))
    hello, heard = frame(DATA, 0, 1, b"\x81\x85mask" + bytes(5)), frame(DATA, END_STREAM, 1, b"\x81\x05hello")
    return in_clear((0, request), (1, opened), (0, SETTINGS_ACK + hello), (1, heard), ends=ENDS)


def begun_late() -> bytes:
    """The capture begins after the first request: names that were agreed on before are unknown."""
    client, server = Headers(), Headers()
    first = OPENING + client.frame(1, asks("/first", "GET", ("x-agreed", "before")), end_stream=True)
    one = settings() + SETTINGS_ACK + server.frame(1, answers(200, ("x-agreed", "before")), end_stream=True)
    again = SETTINGS_ACK + client.frame(3, asks("/second", "GET", ("x-agreed", "before")), end_stream=True)
    two = server.frame(3, answers(200, ("x-agreed", "before"))) + frame(DATA, END_STREAM, 3, b"two")
    frames = in_clear((0, first), (1, one), (0, again), (1, two), ends=ENDS)
    return pcap(frames[5:])


KINDS = (
    of_frames("http2-streams", "three streams at once", streams),
    of_frames("http2-frames", "CONTINUATION, padding, trailers, PING, an unknown type", odd_frames),
    of_frames("http2-push", "PUSH_PROMISE and its answer", pushed),
    of_frames("http2-given-up", "RST_STREAM from either side, GOAWAY below a stream", given_up),
    of_frames("http2-window", "an answer waits for WINDOW_UPDATE", window_limited),
    of_frames("http2-upload-window", "a request's body waits for WINDOW_UPDATE", upload_limited),
    of_frames("http2-grpc", "a gRPC call that succeeds and one that fails", grpc),
    of_frames("http2-websocket", "extended CONNECT", extended_connect),
    Kind("http2-begun-late.pcap", "field compression whose beginning is missing", begun_late),
)
