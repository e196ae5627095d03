"""HTTP/1 conversations: what each side sent and when, and the turns an observer makes of it."""

from __future__ import annotations

import pytest

from netdiag.protocols import http1
from netdiag.protocols.turn import TurnEnd
from netdiag.records.stream import EventKind
from tests.support.http1_talk import GET, OK_5, ms, one
from tests.support.http_bytes import LAST_CHUNK, MS, chunk, chunked, head, octet_by_octet, packet_at, stream


def test_a_request_and_its_answer_with_the_moments_of_their_octets() -> None:
    turn = one(
        stream((0, GET)),
        stream((40, OK_5[:10]), (41, OK_5[10:] + b"he"), (55, b"llo")),
    )
    assert (turn.method, turn.authority, turn.path, turn.status) == ("GET", "example.com", "/a", 200)
    assert ms(turn.request_first) == ms(turn.request_last) == 0
    assert (ms(turn.response_first), ms(turn.response_head_last)) == (40, 41)
    assert (ms(turn.response_body_first), ms(turn.response_last)) == (41, 55)
    assert turn.response_last is not None
    assert turn.response_last.packet == packet_at(55)
    assert (turn.request_bytes, turn.response_bytes, turn.response_body_bytes) == (len(GET), len(OK_5) + 5, 5)
    assert turn.end is TurnEnd.COMPLETE
    assert turn.protocol == "http/1.1"


def test_keep_alive_turns_are_counted_in_order() -> None:
    conversation = http1.decode(
        stream((0, GET), (100, head("GET /b HTTP/1.1\nHost: h")), (200, head("GET /c HTTP/1.1\nHost: h"))),
        stream((10, OK_5 + b"11111"), (110, OK_5 + b"22222"), (210, OK_5 + b"33333")),
    )
    assert [(t.ordinal, t.path, ms(t.response_first)) for t in conversation.turns] == [
        (0, "/a", 10),
        (1, "/b", 110),
        (2, "/c", 210),
    ]
    assert conversation.anomalies == []


def test_pipelined_requests_are_answered_in_order() -> None:
    conversation = http1.decode(
        stream((0, GET + head("HEAD /b HTTP/1.1\nHost: h") + head("GET /c HTTP/1.1\nHost: h"))),
        stream((50, OK_5 + b"aaaaa" + OK_5 + OK_5 + b"ccccc")),
    )
    assert [(t.method, t.path, t.response_body_bytes, t.end) for t in conversation.turns] == [
        ("GET", "/a", 5, TurnEnd.COMPLETE),
        ("HEAD", "/b", 0, TurnEnd.COMPLETE),
        ("GET", "/c", 5, TurnEnd.COMPLETE),
    ]


def test_an_upload_ends_with_its_last_octet_and_may_be_answered_early() -> None:
    turn = one(
        stream((0, head("POST /up HTTP/1.1\nHost: h\nContent-Length: 9")), (5, b"12345"), (90, b"6789")),
        stream((30, head("HTTP/1.1 413 Too Large\nContent-Length: 0"))),
    )
    assert (ms(turn.request_head_last), ms(turn.request_body_first), ms(turn.request_last)) == (0, 5, 90)
    assert turn.request_body_bytes == 9
    assert (turn.status, ms(turn.response_first)) == (413, 30)


@pytest.mark.parametrize(
    "line",
    [
        "HTTP/2.0 200 OK",
        "HTTP/1.10 200 OK",
        "HTTP/1\0.1 200 OK",
        "HTTP/1.1 0200 OK",
        "HTTP/1.1 200\0 OK",
        "HTTP/1.1 2000 OK",
    ],
)
def test_a_status_line_with_an_odd_version_or_status_is_read_and_reported(line: str) -> None:
    conversation = http1.decode(stream((0, GET)), stream((20, head(f"{line}\nContent-Length: 5") + b"hello")))
    (turn,) = conversation.turns
    assert (turn.status, turn.response_body_bytes, turn.end) == (200, 5, TurnEnd.COMPLETE)
    assert any("a status-line without a valid version or status" in a.reason for a in conversation.anomalies)


def test_what_is_no_status_is_none() -> None:
    conversation = http1.decode(stream((0, GET)), stream((20, head("HTTP/1.1 20000 OK\nContent-Length: 5"))))
    assert conversation.turns[0].status is None


def test_interim_responses_never_are_the_answer() -> None:
    turn = one(
        stream((0, head("POST / HTTP/1.1\nHost: h\nExpect: 100-continue\nContent-Length: 5")), (31, b"hello")),
        stream(
            (30, head("HTTP/1.1 100 Continue")),
            (50, head("HTTP/1.1 103 Early Hints\nLink: </style.css>")),
            (60, head("HTTP/1.1 103 Early Hints")),
            (400, OK_5 + b"hello"),
        ),
    )
    assert turn.expects_continue
    assert [(i.status, ms(i.moment)) for i in turn.interim] == [(100, 30), (103, 50), (103, 60)]
    assert (turn.status, ms(turn.response_first), ms(turn.request_last)) == (200, 400, 31)


def test_a_client_that_withholds_its_content_after_a_refusal() -> None:
    conversation = http1.decode(
        stream(
            (0, head("POST /big HTTP/1.1\nHost: h\nExpect: 100-continue\nContent-Length: 5000")),
            (50, head("GET /next HTTP/1.1\nHost: h")),
        ),
        stream((30, head("HTTP/1.1 417 Expectation Failed\nContent-Length: 0")), (70, OK_5 + b"hello")),
    )
    assert [(t.path, t.status, t.request_body_bytes) for t in conversation.turns] == [
        ("/big", 417, 0),
        ("/next", 200, 0),
    ]


def test_empty_lines_before_a_start_line_and_folded_fields_are_read() -> None:
    turn = one(
        stream((0, "\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\nX-Long: one\r\n two\r\n\tthree\r\n\r\n")),
        stream((10, b"\r\n" + OK_5 + b"hello")),
    )
    assert dict(turn.request_headers)["x-long"] == "one two three"
    assert turn.status == 200


def test_a_request_of_http_09_is_answered_without_a_head() -> None:
    conversation = http1.decode(stream((0, "GET /\r\n\r\n")), stream((10, "<html>"), (20, "</html>")))
    (turn,) = conversation.turns
    assert (turn.protocol, turn.method, turn.path, turn.status, turn.end) == (
        "http/0.9",
        "GET",
        "/",
        None,
        TurnEnd.UNTIL_CLOSE,
    )
    assert (ms(turn.response_first), ms(turn.response_last), turn.response_body_bytes) == (10, 20, 13)


@pytest.mark.parametrize(
    ("line", "target"),
    [
        ("GET / HTTP/1.", "/"),
        ("GET /HTTP/1.1", "/HTTP/1.1"),
        ("OPTIONS HTTP/1.1", ""),
        ("OPTIONS", ""),
        ("CCM_POST / HTTP/1.", "/"),
    ],
)
def test_a_malformed_request_line_still_gets_its_refusal(line: str, target: str) -> None:
    conversation = http1.decode(
        stream((0, head(f"{line}\nHost: h"))), stream((10, head("HTTP/1.0 400 Bad Request\nContent-Length: 0")))
    )
    (turn,) = conversation.turns
    assert (turn.method, turn.path, turn.authority, turn.status) == (line.split()[0], target, "h", 400)
    assert "without a valid version" in conversation.anomalies[0].reason


def test_secrets_never_enter_a_turn() -> None:
    conversation = http1.decode(
        stream(
            (
                0,
                head(
                    """
                    POST /v1/chat?api_key=CANARY1&model=x HTTP/1.1
                    Host: api.example.com
                    Authorization: Bearer CANARY2
                    Cookie: session=CANARY3
                    x-api-key: CANARY4
                    Content-Length: 7
                    """
                )
                + b"CANARY5",
            )
        ),
        stream((10, head("HTTP/1.1 200 OK\nSet-Cookie: id=CANARY6\nContent-Length: 7") + b"CANARY7")),
    )
    assert "CANARY" not in repr(conversation)
    assert conversation.turns[0].path == "/v1/chat?api_key=REDACTED&model=x"


def test_events_of_a_streamed_answer_have_the_moment_of_their_blank_line() -> None:
    text = chunked(b'data: {"choices":[{"delta":{"content":"Hello"}}]}\n\n')
    turn = one(
        stream((0, head("POST /v1/chat/completions HTTP/1.1\nHost: h\nContent-Length: 2") + b"{}")),
        stream(
            (50, head("HTTP/1.1 200 OK\nContent-Type: text/event-stream; charset=utf-8\nTransfer-Encoding: chunked")),
            (60, chunked(b'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n')),
            (90, text[:30]),
            (95, text[30:]),
            (200, chunked(b"data: [DONE]\n\n") + LAST_CHUNK),
        ),
    )
    assert [(e.kind, e.deliverable_at / MS) for e in turn.events] == [
        (EventKind.ROLE, 60),
        (EventKind.TEXT, 95),
        (EventKind.DONE, 200),
    ]
    assert turn.stream_api == "openai-chat"
    assert turn.end is TurnEnd.COMPLETE


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\r\n\r\n\r\n",
        b"\x16\x03\x01\x02",
        b"GET",
        b"GET / HTTP/1.1",
        b"GET / HTTP/1.1\r\n",
        b"HTTP/1.1 2",
        b"\0" * 50,
        b"GET  HTTP/1.1\r\n\r\n",
    ],
)
def test_octets_that_are_no_conversation_raise_nothing(text: bytes) -> None:
    conversation = http1.decode(stream((0, text)), stream((1, text)))
    assert all(t.status is None for t in conversation.turns)


def test_a_head_without_end_does_not_grow_without_bound() -> None:
    endless = [chunk(b"GET / HTTP/1.1\r\n", 0)] + [
        chunk(b"X-Field: " + b"v" * 991 + b"\r\n", 1, offset=16 + 1002 * i) for i in range(2000)
    ]
    conversation = http1.decode(endless, [])
    assert len(conversation.turns) == 1
    assert len(conversation.turns[0].request_headers) <= 1000
    assert any("not complete" in a.reason or "more than" in a.reason for a in conversation.anomalies)


def test_octet_by_octet_is_the_same_conversation() -> None:
    client = stream(
        (0, head("POST /a HTTP/1.1\nHost: h\nTransfer-Encoding: chunked") + b"3\r\nabc\r\n0\r\nT: 1\r\n\r\n"), (9, GET)
    )
    server = stream(
        (5, head("HTTP/1.1 103 Hints") + OK_5 + b"hello"),
        (12, head("HTTP/1.1 200 OK\nTransfer-Encoding: chunked") + b"2\r\nhi\r\n0\r\n\r\n"),
    )
    assert http1.decode(octet_by_octet(client), octet_by_octet(server)) == http1.decode(client, server)
