"""HTTP/2 conversations: octets made by a real h2 client and server, or frame by frame, and the turns an observer makes of them."""

from __future__ import annotations

from netdiag.protocols import http1
from netdiag.protocols.http2 import frame_by_frame as http2
from netdiag.protocols.turn import TurnEnd
from tests.support import h2_bytes as h2
from tests.support.h2_bytes import Headers, frame
from tests.support.http2_talk import ms, observe, opened
from tests.support.http_bytes import MS, head, packet_at, stream


def test_a_request_and_its_answer() -> None:
    pair = opened()
    pair.client.send_headers(1, [*h2.REQUEST, ("authorization", "Bearer CANARY")], end_stream=True)
    pair.at(10)
    pair.server.send_headers(1, h2.RESPONSE)
    pair.at(50)
    pair.server.send_data(1, b"hello")
    pair.at(60)
    pair.server.send_data(1, b"", end_stream=True)
    pair.at(95)
    conversation = observe(pair)
    (turn,) = conversation.turns
    assert (turn.stream_id, turn.method, turn.scheme, turn.authority, turn.path, turn.status) == (
        1,
        "GET",
        "https",
        "example.com",
        "/a",
        200,
    )
    assert (ms(turn.request_first), ms(turn.request_last)) == (10, 10)
    assert (ms(turn.response_first), ms(turn.response_body_first), ms(turn.response_last)) == (50, 60, 95)
    assert turn.end is TurnEnd.COMPLETE
    assert (turn.response_body_bytes, turn.protocol) == (5, "h2")
    assert turn.request_first is not None
    assert turn.request_first.packet == packet_at(10)
    assert "CANARY" not in repr(conversation)


def test_the_settings_of_both_sides_and_when_they_were_acknowledged() -> None:
    pair = opened()
    facts = observe(pair).h2
    assert facts is not None
    server = facts.first_settings(1)
    assert server is not None
    assert server.acknowledged is not None
    assert (ms(server.moment), ms(server.acknowledged)) == (0, 1)
    assert ms(facts.preface) == 0
    assert facts.concurrency_limit(0) == 100 == server.values[3]
    assert facts.concurrency_limit(-1) is None


def test_streams_that_overlap_and_what_they_share() -> None:
    pair = opened()
    for stream_id in (1, 3, 5):
        pair.client.send_headers(stream_id, h2.REQUEST, end_stream=True)
    pair.at(10)
    for stream_id in (3, 1, 5):
        pair.server.send_headers(stream_id, h2.RESPONSE)
    pair.at(20)
    pair.server.send_data(1, b"a" * 100)
    pair.server.send_data(3, b"b" * 1000, end_stream=True)
    pair.server.send_data(1, b"a" * 100, end_stream=True)
    pair.at(30)
    pair.server.send_data(5, b"c" * 50, end_stream=True)
    pair.at(40)
    conversation = observe(pair)
    by_id = {t.stream_id: t for t in conversation.turns}
    assert [by_id[i].open_streams for i in (1, 3, 5)] == [0, 1, 2]
    assert by_id[1].other_data_bytes == 1000
    assert by_id[3].other_data_bytes == by_id[5].other_data_bytes == 0
    assert [ms(by_id[i].response_last) for i in (1, 3, 5)] == [30, 30, 40]
    assert conversation.h2 is not None
    assert conversation.h2.max_open_streams == 3


def test_an_upload_ends_at_the_frame_with_end_stream() -> None:
    pair = opened()
    pair.client.send_headers(1, [(":method", "POST"), *h2.REQUEST[1:]])
    pair.at(10)
    pair.client.send_data(1, b"x" * 1000)
    pair.at(20)
    pair.client.send_data(1, b"x" * 500, end_stream=True)
    pair.at(35)
    pair.server.send_headers(1, h2.RESPONSE, end_stream=True)
    pair.at(80)
    (turn,) = observe(pair).turns
    assert (ms(turn.request_head_last), ms(turn.request_body_first), ms(turn.request_last)) == (10, 20, 35)
    assert (turn.request_body_bytes, turn.response_body_bytes, turn.end) == (1500, 0, TurnEnd.COMPLETE)


def test_interim_sections_never_are_the_answer() -> None:
    pair = opened()
    pair.client.send_headers(1, h2.REQUEST, end_stream=True)
    pair.at(10)
    pair.server.send_headers(1, [(":status", "103"), ("link", "</style.css>")])
    pair.at(30)
    pair.server.send_headers(1, h2.RESPONSE, end_stream=True)
    pair.at(400)
    (turn,) = observe(pair).turns
    assert [(i.status, ms(i.moment)) for i in turn.interim] == [(103, 30)]
    assert (turn.status, ms(turn.response_first)) == (200, 400)


def test_trailers_of_an_answer_and_the_status_of_grpc() -> None:
    pair = opened()
    pair.client.send_headers(1, [(":method", "POST"), *h2.REQUEST[1:], ("content-type", "application/grpc")])
    pair.client.send_data(1, b"\0\0\0\0\2hi", end_stream=True)
    pair.at(10)
    pair.server.send_headers(1, [(":status", "200"), ("content-type", "application/grpc+proto")])
    pair.at(20)
    pair.server.send_data(1, b"\0\0\0\0\3abc\0\0\0\0\4de")
    pair.at(30)
    pair.server.send_data(1, b"fg")
    pair.at(50)
    pair.server.send_headers(1, [("grpc-status", "14"), ("grpc-message", "unavailable")], end_stream=True)
    pair.at(60)
    (turn,) = observe(pair).turns
    assert (turn.status, turn.grpc_status, turn.stream_api) == (200, 14, "grpc")
    assert dict(turn.trailers)["grpc-message"] == "unavailable"
    assert [(e.size_bytes, e.deliverable_at / MS) for e in turn.events] == [(8, 30), (9, 50)]
    assert ms(turn.response_last) == 60


def test_a_grpc_answer_of_trailers_only() -> None:
    pair = opened()
    pair.client.send_headers(1, h2.REQUEST, end_stream=True)
    pair.at(10)
    pair.server.send_headers(
        1, [(":status", "200"), ("content-type", "application/grpc"), ("grpc-status", "5")], end_stream=True
    )
    pair.at(20)
    (turn,) = observe(pair).turns
    assert (turn.grpc_status, turn.end) == (5, TurnEnd.COMPLETE)


def test_a_pushed_answer_begins_with_its_promise() -> None:
    pair = opened()
    pair.client.send_headers(1, h2.REQUEST, end_stream=True)
    pair.at(10)
    pair.server.push_stream(1, 2, [*h2.REQUEST[:3], (":path", "/style.css")])
    pair.server.send_headers(1, h2.RESPONSE, end_stream=True)
    pair.at(20)
    pair.server.send_headers(2, h2.RESPONSE, end_stream=True)
    pair.at(35)
    first, pushed = observe(pair).turns
    assert not first.pushed
    assert (pushed.pushed, pushed.path, pushed.status) == (True, "/style.css", 200)
    assert (ms(pushed.request_first), ms(pushed.response_first)) == (20, 35)


def test_padding_priority_and_continuation_are_taken_apart() -> None:
    client, server = Headers(), Headers()
    block = client.block([*h2.REQUEST, ("x-long", "v" * 200)])
    padded = frame(
        h2.HEADERS, h2.PADDED | h2.PRIORITY_FLAG | h2.END_STREAM, 1, b"\4" + b"\0\0\0\0\x10" + block[:20] + b"\0" * 4
    )
    rest = frame(h2.CONTINUATION, 0, 1, block[20:60]) + frame(h2.CONTINUATION, h2.END_HEADERS, 1, block[60:])
    conversation = http2.decode(
        stream((0, h2.PREFACE + h2.settings()), (10, padded), (20, rest)),
        stream(
            (1, h2.settings()),
            (50, server.frame(1, h2.RESPONSE)),
            (60, frame(h2.DATA, h2.PADDED | h2.END_STREAM, 1, b"\7hello" + b"\0" * 7)),
        ),
    )
    (turn,) = conversation.turns
    assert conversation.anomalies == []
    assert dict(turn.request_headers)["x-long"] == "v" * 200
    assert (ms(turn.request_first), ms(turn.request_head_last), ms(turn.request_last)) == (10, 20, 20)
    assert (turn.response_body_bytes, turn.end) == (5, TurnEnd.COMPLETE)
    assert turn.request_bytes == len(padded) + len(rest)


def test_unknown_frames_are_passed_over() -> None:
    client, server = Headers(), Headers()
    conversation = http2.decode(
        stream(
            (
                0,
                h2.PREFACE
                + h2.settings()
                + frame(0x2A, 0xFF, 7, b"grease")
                + client.frame(1, h2.REQUEST, end_stream=True),
            )
        ),
        stream((1, h2.settings() + frame(0xC, 0, 0, b"origin") + server.frame(1, h2.RESPONSE, end_stream=True))),
    )
    assert [t.status for t in conversation.turns] == [200]
    assert conversation.anomalies == []


def test_an_upgrade_from_http1_answers_on_stream_one() -> None:
    client, server = Headers(), Headers()
    first = http1.decode(
        stream(
            (
                0,
                head(
                    "GET /up?key=CANARY HTTP/1.1\nHost: h\nConnection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAMAAABkAAQAAP__"
                ),
            ),
            (30, h2.PREFACE + h2.settings()),
            (50, client.frame(3, h2.REQUEST, end_stream=True)),
        ),
        stream(
            (20, head("HTTP/1.1 101 Switching Protocols\nConnection: Upgrade\nUpgrade: h2c") + h2.settings()),
            (40, server.frame(1, h2.RESPONSE) + frame(h2.DATA, h2.END_STREAM, 1, b"hello")),
            (60, server.frame(3, h2.RESPONSE, end_stream=True)),
        ),
    )
    conversation = http2.decode(first.tunnels[0].client, first.tunnels[0].server, upgraded_from=first.tunnels[0].turn)
    one, three = conversation.turns
    assert conversation.anomalies == []
    assert (one.protocol, one.stream_id, one.method, one.path, one.status, one.response_body_bytes) == (
        "h2",
        1,
        "GET",
        "/up?key=REDACTED",
        200,
        5,
    )
    assert (ms(one.request_first), ms(one.request_last), ms(one.response_first)) == (0, 0, 40)
    assert (three.stream_id, three.status) == (3, 200)
