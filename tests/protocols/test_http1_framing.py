"""Where the content of a message ends (RFC 9112 section 6)."""

from __future__ import annotations

import pytest

from netdiag.protocols import http1
from netdiag.protocols.turn import TurnEnd
from tests.support.http1_talk import GET, OK_5, ms, one
from tests.support.http_bytes import head, stream


@pytest.mark.parametrize("line_end", ["\r\n", "\n"])
def test_chunked_content_with_extension_and_trailers(line_end: str) -> None:
    text = (
        "HTTP/1.1 200 OK|Transfer-Encoding: chunked||5;name=x|hello|A|0123456789|0|Expires: never|X-Sum: 1||".replace(
            "|", line_end
        )
    )
    turn = one(stream((0, GET)), stream((20, text)))
    assert turn.end is TurnEnd.COMPLETE
    assert turn.response_body_bytes == 15
    assert turn.response_bytes == len(text)
    assert turn.trailers == (("expires", "never"), ("x-sum", "1"))


def test_each_chunk_as_it_comes_and_the_end_with_the_last_line() -> None:
    turn = one(
        stream((0, GET)),
        stream(
            (20, head("HTTP/1.1 200 OK\nTransfer-Encoding: chunked")),
            (30, b"5\r\nhello\r\n"),
            (70, b"0\r\n"),
            (75, b"\r\n"),
        ),
    )
    assert (ms(turn.response_body_first), ms(turn.response_last)) == (30, 75)


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_no_content_whatever_the_length_says(status: str) -> None:
    conversation = http1.decode(
        stream((0, GET), (50, head("GET /b HTTP/1.1\nHost: h"))),
        stream((10, head(f"HTTP/1.1 {status}\nContent-Length: 5")), (60, OK_5 + b"hello")),
    )
    assert [(t.status, t.end, t.response_body_bytes) for t in conversation.turns] == [
        (int(status[:3]), TurnEnd.COMPLETE, 0),
        (200, TurnEnd.COMPLETE, 5),
    ]


def test_content_that_looks_like_a_request_is_content() -> None:
    smuggled = head("GET /smuggled HTTP/1.1\nHost: h")
    conversation = http1.decode(
        stream(
            (0, head(f"POST / HTTP/1.1\nHost: h\nContent-Length: {len(smuggled)}")),
            (5, smuggled),
            (50, head("GET /b HTTP/1.1\nHost: h")),
        ),
        stream((10, OK_5 + b"aaaaa"), (60, OK_5 + b"bbbbb")),
    )
    assert [t.path for t in conversation.turns] == ["/", "/b"]


def test_two_lengths_that_disagree_are_an_anomaly_not_a_guess() -> None:
    conversation = http1.decode(
        stream(
            (
                0,
                head("POST / HTTP/1.1\nHost: h\nContent-Length: 5\nContent-Length: 30")
                + b"hello"
                + head("GET /smuggled HTTP/1.1"),
            )
        ),
        stream((10, OK_5 + b"hello")),
    )
    assert [t.path for t in conversation.turns] == ["/"]
    assert "ambiguous" in conversation.anomalies[0].reason


def test_a_coding_beats_a_length_and_is_reported() -> None:
    conversation = http1.decode(
        stream(
            (
                0,
                head("POST / HTTP/1.1\nHost: h\nContent-Length: 4\nTransfer-Encoding: chunked")
                + b"5\r\nhello\r\n0\r\n\r\n",
            )
        ),
        stream((10, OK_5 + b"hello")),
    )
    assert conversation.turns[0].request_body_bytes == 5
    assert "Transfer-Encoding and Content-Length" in conversation.anomalies[0].reason


def test_an_http10_answer_lasts_until_the_connection_ends() -> None:
    turn = one(
        stream((0, "GET / HTTP/1.0\r\n\r\n")),
        stream((10, "HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<p>"), (20, "more"), (90, "last")),
    )
    assert (turn.protocol, turn.end, turn.response_body_bytes, ms(turn.response_last)) == (
        "http/1.0",
        TurnEnd.UNTIL_CLOSE,
        11,
        90,
    )
    assert turn.authority is None


@pytest.mark.parametrize("length", ["-1", "18446744073709551615", "1, 2", "5 6"])
def test_a_request_right_behind_a_length_that_is_none_is_the_next_one(length: str) -> None:
    first, second = head(f"POST /a HTTP/1.1\nHost: h\nContent-Length: {length}"), head("GET /b HTTP/1.1\nHost: h")
    conversation = http1.decode(stream((0, first + second)), stream((10, OK_5 + b"hello"), (20, OK_5 + b"again")))
    assert [(t.method, t.path, t.status) for t in conversation.turns] == [("POST", "/a", 200), ("GET", "/b", 200)]
    assert conversation.turns[0].request_body_bytes == 0
    assert "Content-Length" in conversation.anomalies[0].reason


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("Content-Length: 0000000000000000000000000005", b"hello"),
        ("Transfer-Encoding: chunked, identity", b"0\r\n\r\n"),
    ],
)
def test_lenient_ways_to_say_where_a_body_ends(field: str, body: bytes) -> None:
    ask = head(f"POST /a HTTP/1.1\nHost: h\n{field}") + body + head("GET /b HTTP/1.1\nHost: h")
    conversation = http1.decode(stream((0, ask)), stream((10, OK_5 + b"hello"), (20, OK_5 + b"again")))
    assert [(t.method, t.path) for t in conversation.turns] == [("POST", "/a"), ("GET", "/b")]
    assert conversation.anomalies == []
