"""Captures that begin late, end early, or lack octets."""

from __future__ import annotations

import pytest

from netdiag.protocols import http1
from netdiag.protocols.turn import TurnEnd
from tests.support.http1_talk import GET, OK_5, ms, one
from tests.support.http_bytes import head, stream


def test_the_end_of_the_octets_before_the_end_of_the_message() -> None:
    turn = one(stream((0, GET)), stream((10, head("HTTP/1.1 200 OK\nContent-Length: 500") + b"only this")))
    assert (turn.end, turn.response_body_bytes) == (TurnEnd.INCOMPLETE, 9)
    assert ms(turn.response_last) == 10


def test_a_request_that_nobody_answered() -> None:
    turn = one(stream((0, GET)), [])
    assert (turn.status, turn.response_first, turn.end) == (None, None, TurnEnd.INCOMPLETE)


def test_a_capture_that_begins_with_an_answer() -> None:
    conversation = http1.decode(
        stream((50, GET)),
        stream((10, "rest of an earlier body"), (20, OK_5 + b"first"), (60, OK_5 + b"hello")),
    )
    assert [(t.method, t.status, ms(t.response_first)) for t in conversation.turns] == [
        (None, 200, 20),
        ("GET", 200, 60),
    ]


def test_only_the_server_was_captured() -> None:
    conversation = http1.decode([], stream((20, OK_5 + b"first" + head("HTTP/1.1 404 No\nContent-Length: 0"))))
    assert [(t.method, t.status) for t in conversation.turns] == [(None, 200), (None, 404)]


def test_a_capture_that_begins_inside_an_upload() -> None:
    conversation = http1.decode(
        stream((0, "...end of an upload\r\nGET /not HTTP/1.1\r\n\r\n"), (50, GET)),
        stream((60, OK_5 + b"hello")),
    )
    assert [t.path for t in conversation.turns] == ["/a"]
    assert "request-line" in conversation.anomalies[0].reason


def test_octets_missing_inside_a_body_of_known_length() -> None:
    conversation = http1.decode(
        stream((0, GET), (100, head("GET /b HTTP/1.1\nHost: h"))),
        stream(
            (10, head("HTTP/1.1 200 OK\nContent-Length: 1000") + b"x" * 100),
            (0, 600),
            (30, b"x" * 300),
            (110, OK_5 + b"hello"),
        ),
    )
    first, second = conversation.turns
    assert (first.end, first.response_body_bytes, first.response_missing_bytes, ms(first.response_last)) == (
        TurnEnd.COMPLETE,
        1000,
        600,
        30,
    )
    assert (second.status, second.end) == (200, TurnEnd.COMPLETE)


def test_octets_missing_up_to_the_end_of_a_body_leave_the_next_answer_in_place() -> None:
    conversation = http1.decode(
        stream((0, GET), (100, head("GET /b HTTP/1.1\nHost: h"))),
        stream((10, head("HTTP/1.1 200 OK\nContent-Length: 1000") + b"x" * 100), (0, 900), (110, OK_5 + b"hello")),
    )
    assert [(t.end, t.response_bytes) for t in conversation.turns][1] == (TurnEnd.COMPLETE, len(OK_5) + 5)
    assert conversation.turns[0].response_missing_bytes == 900


@pytest.mark.parametrize("missing", [5000, -1])
def test_an_answer_lost_in_a_gap_does_not_shift_the_others(missing: int) -> None:
    conversation = http1.decode(
        stream((0, GET), (100, head("GET /b HTTP/1.1\nHost: h")), (200, head("GET /c HTTP/1.1\nHost: h"))),
        stream(
            (10, head("HTTP/1.1 200 OK\nContent-Length: 50") + b"x" * 50),
            (0, missing),
            (210, head("HTTP/1.1 404 No\nContent-Length: 0")),
        ),
    )
    assert [(t.path, t.status) for t in conversation.turns] == [("/a", 200), ("/b", None), ("/c", 404)]


def test_a_start_line_inside_content_after_a_gap_is_not_believed() -> None:
    decoy = b"<pre>\nHTTP/1.1 500 Oops\r\n\r\n</pre>"
    conversation = http1.decode(
        stream((0, GET), (100, head("GET /b HTTP/1.1\nHost: h"))),
        stream(
            (10, head("HTTP/1.1 200 OK\nContent-Length: 90000")),
            (0, -1),
            (20, decoy),
            (21, decoy),
            (110, OK_5 + b"hello"),
        ),
    )
    assert [(t.path, t.status, t.end) for t in conversation.turns] == [
        ("/a", 200, TurnEnd.INCOMPLETE),
        ("/b", 200, TurnEnd.COMPLETE),
    ]


def test_a_head_cut_by_the_snap_length_still_says_what_it_can() -> None:
    conversation = http1.decode(
        stream(
            (0, "GET /a HTTP/1.1\r\nHost: example.com\r\nAuthorization: Bea"),
            (0, 300),
            (50, "GET /b HTTP/1.1\r\nHost: exam"),
            (0, 80),
        ),
        stream((10, "HTTP/1.1 200 OK\r\nServer: x\r\nDa"), (0, 900), (60, "HTTP/1.1 404 Not Found\r\nSer")),
    )
    first, second = conversation.turns
    assert (first.path, first.authority, first.status, first.headers_incomplete) == ("/a", "example.com", 200, True)
    assert "Bea" not in str(first)
    assert (second.path, second.status) == ("/b", 404)
    assert ms(first.request_last) == 0


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("GET /index.html HTTP/1.", "/index.html"),
        ("GET /index.html ", "/index.html"),
        ("GET /index.ht", "/index.ht\N{HORIZONTAL ELLIPSIS}"),
        ("GET http://example.com/a?b=c HT", "/a?b=c"),
    ],
)
def test_a_request_line_cut_by_the_snap_length_still_names_method_and_target(line: str, path: str) -> None:
    turn = one(stream((0, line), (0, 400)), stream((10, "HTTP/1.1 200 O"), (0, 900)))
    assert (turn.method, turn.path, turn.status, turn.headers_incomplete) == ("GET", path, 200, True)
    assert ms(turn.request_last) == 0


def test_messages_cut_inside_their_first_lines_are_told_apart() -> None:
    conversation = http1.decode(
        stream((0, "GET /a HTTP/1.0\r\nConn"), (0, 250), (50, "GET /b HTTP/1.0"), (0, 300), (90, "GET /c"), (0, 300)),
        stream((10, "HTTP/1.1 200 OK"), (0, 900), (60, "HTTP/1.1 404 Not F"), (0, 900), (95, "HTTP/1.1 304"), (0, 9)),
    )
    assert [(t.path, t.status, ms(t.request_first), ms(t.request_last)) for t in conversation.turns] == [
        ("/a", 200, 0, 0),
        ("/b", 404, 50, 50),
        ("/c\N{HORIZONTAL ELLIPSIS}", 304, 90, 90),
    ]


def test_a_cut_line_that_is_no_request_line_is_not_believed() -> None:
    conversation = http1.decode(stream((0, "GET some words"), (0, 400)), [])
    assert conversation.turns == []
    assert "request-line" in conversation.anomalies[0].reason
