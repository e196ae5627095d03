"""HTTP/2 conversations: octets made by a real h2 client and server, or frame by frame, and the turns an observer makes of them."""

from __future__ import annotations

import pytest

from netdiag.protocols import http1, http2
from netdiag.protocols.conversation import Conversation, WindowStall
from netdiag.protocols.h2_streams import MAX_LIVE_STREAMS
from netdiag.protocols.turn import Turn, TurnEnd
from netdiag.wire.chunk import Chunk
from tests.support import h2_bytes as h2
from tests.support.h2_bytes import Headers, Pair, frame
from tests.support.http_bytes import MS, chunk, head, join, octet_by_octet, packet_at, recut, stream

Pairs = list[tuple[str, str]]


def ms(moment: object) -> float | None:
    return None if moment is None else moment.deliverable_at / MS  # type: ignore[attr-defined]


def observe(pair: Pair) -> Conversation:
    conversation = http2.decode(pair.from_client, pair.from_server)
    assert conversation.anomalies == []
    return conversation


def opened() -> Pair:
    pair = Pair()
    pair.at(0)
    pair.at(1)
    return pair


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


@pytest.mark.parametrize(
    ("code", "end"),
    [(7, TurnEnd.REFUSED), (2, TurnEnd.RESET_BY_SERVER), (0, TurnEnd.RESET_BY_SERVER)],
)
def test_a_stream_that_the_server_resets(code: int, end: TurnEnd) -> None:
    pair = opened()
    pair.client.send_headers(1, h2.REQUEST, end_stream=True)
    pair.at(10)
    pair.server.reset_stream(1, code)
    pair.at(30)
    (turn,) = observe(pair).turns
    assert (turn.end, turn.error_code, ms(turn.ended)) == (end, code, 30)


def test_a_stream_that_the_client_cancels() -> None:
    pair = opened()
    pair.client.send_headers(1, h2.REQUEST, end_stream=True)
    pair.at(10)
    pair.server.send_headers(1, h2.RESPONSE)
    pair.server.send_data(1, b"some")
    pair.at(20)
    pair.client.reset_stream(1, 8)
    pair.at(25)
    (turn,) = observe(pair).turns
    assert (turn.end, turn.error_code, turn.status, ms(turn.response_last)) == (TurnEnd.RESET_BY_CLIENT, 8, 200, 20)


def test_a_reset_after_the_whole_answer_changes_nothing() -> None:
    pair = opened()
    pair.client.send_headers(1, [(":method", "POST"), *h2.REQUEST[1:]])
    pair.at(10)
    pair.server.send_headers(1, h2.RESPONSE, end_stream=True)
    pair.server.reset_stream(1, 0)
    pair.at(20)
    (turn,) = observe(pair).turns
    assert (turn.end, turn.error_code, turn.ended) == (TurnEnd.COMPLETE, 0, None)
    assert turn.request_last is None


def test_goaway_ends_the_streams_above_it() -> None:
    client, server = Headers(), Headers()
    conversation = http2.decode(
        stream(
            (0, h2.PREFACE + h2.settings()),
            (10, client.frame(1, h2.REQUEST, end_stream=True) + client.frame(3, h2.REQUEST, end_stream=True)),
        ),
        stream((1, h2.settings()), (20, h2.goaway(1, 2)), (30, server.frame(1, h2.RESPONSE, end_stream=True))),
    )
    first, second = conversation.turns
    assert (first.end, second.end, second.error_code, ms(second.ended)) == (TurnEnd.COMPLETE, TurnEnd.GOAWAY, 2, 20)
    assert conversation.h2 is not None
    assert conversation.h2.goaways[0].last_stream_id == 1


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


def test_a_capture_that_begins_in_the_middle_reads_what_the_static_table_says() -> None:
    client, server = Headers(), Headers()
    client.frame(1, [*h2.REQUEST, ("authorization", "secret")])
    server.frame(1, [*h2.RESPONSE, ("etag", "1")])
    conversation = http2.decode(
        stream((10, client.frame(3, [*h2.REQUEST, ("x-new", "1")], end_stream=True))),
        stream((20, server.frame(3, [*h2.RESPONSE, ("etag", "1")])), (30, frame(h2.DATA, h2.END_STREAM, 3, b"hello"))),
    )
    (turn,) = conversation.turns
    assert turn.headers_incomplete
    assert (turn.method, turn.status, turn.authority, turn.path) == ("GET", 200, None, None)
    assert (turn.end, ms(turn.response_first), ms(turn.response_last)) == (TurnEnd.COMPLETE, 20, 30)
    assert dict(turn.request_headers) == {"x-new": "1"}


def test_octets_missing_inside_data_are_counted_and_nothing_else_is_lost() -> None:
    client, server = Headers(), Headers()
    data = frame(h2.DATA, 0, 1, b"x" * 1000)
    conversation = http2.decode(
        stream(
            (0, h2.PREFACE + h2.settings()),
            (10, client.frame(1, h2.REQUEST, end_stream=True)),
            (60, client.frame(3, h2.REQUEST, end_stream=True)),
        ),
        stream(
            (1, h2.settings()),
            (20, server.frame(1, [*h2.RESPONSE, ("etag", "1")]) + data[:100]),
            (0, 800),
            (30, data[900:] + frame(h2.DATA, h2.END_STREAM, 1)),
            (70, server.frame(3, [*h2.RESPONSE, ("etag", "1")], end_stream=True)),
        ),
    )
    first, second = conversation.turns
    assert (first.response_body_bytes, first.response_missing_bytes, first.end) == (1000, 800, TurnEnd.COMPLETE)
    assert dict(second.response_headers)["etag"] == "1"
    assert not second.headers_incomplete


def test_octets_missing_inside_headers_leave_their_moments() -> None:
    client, server = Headers(), Headers()
    block = server.frame(1, [*h2.RESPONSE, ("etag", "1" * 60)])
    conversation = http2.decode(
        stream((0, h2.PREFACE + h2.settings()), (10, client.frame(1, h2.REQUEST, end_stream=True))),
        stream(
            (1, h2.settings()),
            (20, block[:12]),
            (0, 20),
            (25, block[32:] + frame(h2.DATA, h2.END_STREAM, 1, b"hello")),
        ),
    )
    (turn,) = conversation.turns
    assert (turn.headers_incomplete, turn.status, turn.end) == (True, None, TurnEnd.COMPLETE)
    assert (ms(turn.response_first), ms(turn.response_head_last), turn.response_body_bytes) == (20, 25, 5)


def test_after_a_gap_of_unknown_size_streams_go_on_without_header_history() -> None:
    client, server = Headers(), Headers()
    conversation = http2.decode(
        stream(
            (0, h2.PREFACE + h2.settings()),
            (10, client.frame(1, h2.REQUEST, end_stream=True) + client.frame(3, h2.REQUEST, end_stream=True)),
        ),
        stream(
            (1, h2.settings()),
            (20, server.frame(1, [*h2.RESPONSE, ("etag", "1")]) + frame(h2.DATA, 0, 1, b"x" * 1000)[:400]),
            (0, -1),
            (30, b"tail of something" * 3),
            (
                40,
                server.frame(3, [*h2.RESPONSE, ("etag", "1"), ("x-new", "2")])
                + frame(h2.DATA, h2.END_STREAM, 3, b"hi"),
            ),
        ),
    )
    first, second = conversation.turns
    assert (first.status, first.end) == (200, TurnEnd.INCOMPLETE)
    assert (second.status, second.end, second.headers_incomplete) == (200, TurnEnd.COMPLETE, True)
    assert dict(second.response_headers) == {"x-new": "2"}


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
    assert first.tunnel is not None
    conversation = http2.decode(first.tunnel.client, first.tunnel.server, upgraded_from=first.tunnel.turn)
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


def stalls(client: list[Chunk], server: list[Chunk]) -> list[WindowStall]:
    conversation = http2.decode(client, server)
    assert conversation.h2 is not None
    return conversation.h2.stalls


def test_an_upload_that_used_up_the_stream_window() -> None:
    client = Headers()
    block = client.frame(1, [(":method", "POST"), *h2.REQUEST[1:]])
    data = [frame(h2.DATA, 0, 1, b"x" * n) for n in (16384, 16384, 16384, 16383)]
    stall, of_connection = stalls(
        stream(
            (0, h2.PREFACE + h2.settings()),
            (10, block + b"".join(data)),
            (115, frame(h2.DATA, h2.END_STREAM, 1, b"rest")),
        ),
        stream((1, h2.settings()), (60, h2.window_update(0, 1 << 20)), (110, h2.window_update(1, 1 << 20))),
    )
    assert (of_connection.stream_id, ms(of_connection.since), ms(of_connection.until)) == (0, 10, 60)
    assert (stall.sender, stall.stream_id, stall.window_bytes) == (0, 1, 0)
    assert (ms(stall.since), ms(stall.until), ms(stall.resumed)) == (10, 110, 115)


def test_a_download_stopped_by_the_connection_window() -> None:
    client, server = Headers(), Headers()
    requests = client.frame(1, h2.REQUEST, end_stream=True) + client.frame(3, h2.REQUEST, end_stream=True)
    answers = server.frame(1, h2.RESPONSE) + server.frame(3, h2.RESPONSE)
    large = [frame(h2.DATA, 0, i, b"x" * n) for i, n in ((1, 16384), (1, 16384), (3, 16384), (3, 16383))]
    (stall,) = stalls(
        stream((0, h2.PREFACE + h2.settings(s4=1 << 20)), (5, requests), (70, h2.window_update(0, 65535))),
        stream(
            (1, h2.settings()),
            (20, answers + b"".join(large)),
            (75, frame(h2.DATA, h2.END_STREAM, 1, b"r") + frame(h2.DATA, h2.END_STREAM, 3, b"r")),
        ),
    )
    assert (stall.sender, stall.stream_id, ms(stall.since), ms(stall.until), ms(stall.resumed)) == (1, 0, 20, 70, 75)


def test_a_window_that_was_emptied_by_the_last_octet_stops_nobody() -> None:
    client = Headers()
    block = client.frame(1, [(":method", "POST"), *h2.REQUEST[1:]])
    sent = [frame(h2.DATA, h2.END_STREAM if n == 16383 else 0, 1, b"x" * n) for n in (16384, 16384, 16384, 16383)]
    assert (
        stalls(
            stream((0, h2.PREFACE + h2.settings() + block + b"".join(sent))),
            stream((1, h2.settings()), (60, h2.window_update(0, 1))),
        )
        == []
    )


def test_a_stall_that_never_ended() -> None:
    client = Headers()
    block = client.frame(1, [(":method", "POST"), *h2.REQUEST[1:]])
    data = [frame(h2.DATA, 0, 1, b"x" * 1000)]
    found = stalls(
        stream((2, h2.PREFACE + h2.settings()), (10, block + b"".join(data))), stream((1, h2.settings(s4=1000)))
    )
    assert [(s.stream_id, s.until, s.resumed) for s in found] == [(1, None, None)]


def test_a_larger_initial_window_counts_for_open_streams() -> None:
    client = Headers()
    block = client.frame(1, [(":method", "POST"), *h2.REQUEST[1:]])
    (stall,) = stalls(
        stream(
            (2, h2.PREFACE + h2.settings()),
            (10, block + frame(h2.DATA, 0, 1, b"x" * 1000)),
            (40, frame(h2.DATA, h2.END_STREAM, 1, b"x" * 1000)),
        ),
        stream((1, h2.settings(s4=1000)), (30, h2.settings(s4=5000))),
    )
    assert (ms(stall.since), ms(stall.until), ms(stall.resumed)) == (10, 30, 40)


def test_a_flood_of_continuations_is_cut_and_the_connection_goes_on() -> None:
    client, server = Headers(), Headers()
    flood = frame(h2.HEADERS, h2.END_STREAM, 1, b"\x82") + frame(h2.CONTINUATION, 0, 1, b"\x00\x01a\x01b" * 10) * 100
    flood += frame(h2.CONTINUATION, h2.END_HEADERS, 1, b"")
    conversation = http2.decode(
        stream((0, h2.PREFACE + h2.settings() + flood + client.frame(3, h2.REQUEST, end_stream=True))),
        stream((1, h2.settings() + server.frame(3, h2.RESPONSE, end_stream=True))),
    )
    flooded, ordinary = conversation.turns
    assert flooded.headers_incomplete
    assert flooded.request_headers == ()
    assert (ordinary.method, ordinary.status) == ("GET", 200)
    assert "more than 64 CONTINUATION" in conversation.anomalies[0].reason


def test_a_flood_of_streams_is_bounded() -> None:
    client = Headers()
    many = b"".join(client.frame(i, h2.REQUEST, end_stream=True) for i in range(1, 2 * MAX_LIVE_STREAMS + 200, 2))
    conversation = http2.decode(stream((0, h2.PREFACE + h2.settings() + many)), stream((1, h2.settings())))
    assert conversation.h2 is not None
    assert conversation.h2.max_open_streams == MAX_LIVE_STREAMS
    assert len(conversation.turns) == MAX_LIVE_STREAMS + 100
    assert len(conversation.anomalies) < 250


def test_a_field_section_bomb_is_cut() -> None:
    client = Headers()
    bomb = client.block([("x", "v" * 4000)]) + b"\xbe" * 12_000
    conversation = http2.decode(
        stream((0, h2.PREFACE + h2.settings() + frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, 1, bomb))),
        stream((1, h2.settings())),
    )
    assert len(repr(conversation.turns[0].request_headers)) < 80_000
    assert "above the limits" in conversation.anomalies[0].reason


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"PRI",
        h2.PREFACE,
        h2.PREFACE[:10] + b"x",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0" * 100,
        b"\xff" * 100,
        frame(h2.HEADERS, 0, 0, b"\x82"),
        frame(h2.CONTINUATION, 4, 1, b""),
    ],
)
def test_octets_that_are_no_conversation_raise_nothing(octets: bytes) -> None:
    for client, server in (
        (octets, b""),
        (b"", octets),
        (octets, octets),
        (h2.PREFACE + octets, h2.settings() + octets),
    ):
        turns = http2.decode(stream((0, client)), stream((0, server))).turns
        assert not any(turn.end is TurnEnd.COMPLETE for turn in turns)


def test_the_order_of_directions_does_not_matter() -> None:
    pair = _long_conversation()
    late = [chunk(c.data, 0, offset=c.offset, packet=c.first_packet) for c in pair.from_server]
    ordinary = http2.decode([chunk(c.data, 0, offset=c.offset, packet=c.first_packet) for c in pair.from_client], late)
    server_first = http2.decode(
        [chunk(c.data, 9, offset=c.offset, packet=c.first_packet) for c in pair.from_client], late
    )

    def facts(turn: Turn) -> tuple[object, ...]:
        return (
            turn.stream_id,
            turn.method,
            turn.path,
            turn.status,
            turn.end,
            turn.request_bytes,
            turn.response_bytes,
            turn.trailers,
        )

    def answered(turns: list[Turn]) -> list[Turn]:
        return [t for t in turns if t.status is not None]

    assert len(answered(ordinary.turns)) == 9
    assert sorted(map(facts, answered(ordinary.turns))) == sorted(map(facts, answered(server_first.turns)))


@pytest.mark.parametrize("cut", ["octet by octet", "frame by frame", "all at once"])
def test_however_the_octets_are_cut_the_turns_are_the_same(cut: str) -> None:
    pair = _long_conversation()
    at_once = [
        [chunk(c.data, 5, offset=c.offset, packet=1) for c in side] for side in (pair.from_client, pair.from_server)
    ]
    if cut == "octet by octet":
        again = [octet_by_octet(side) for side in at_once]
    elif cut == "all at once":
        again = [join(side) for side in at_once]
    else:
        again = [recut(side, range(0, 20_000, 13)) for side in at_once]
    assert http2.decode(*again) == http2.decode(*at_once)


def _long_conversation() -> Pair:
    pair = opened()
    for i in range(12):
        stream_id = 2 * i + 1
        pair.client.send_headers(
            stream_id, [(":method", "POST"), *h2.REQUEST[1:3], (":path", f"/item/{i}"), ("x-n", str(i % 3))]
        )
        pair.client.send_data(stream_id, b"q" * 100 * i, end_stream=True, pad_length=i or None)
        pair.at(10 * i + 10)
        if i % 4 == 3:
            pair.server.reset_stream(stream_id, 7)
            pair.at(10 * i + 12)
            continue
        pair.server.send_headers(stream_id, [(":status", "200"), ("content-type", "text/plain"), ("date", f"Mon, {i}")])
        pair.server.send_data(stream_id, b"a" * 200 * i)
        pair.server.send_headers(stream_id, [("x-sum", str(i))], end_stream=True)
        pair.at(10 * i + 15)
    return pair


def test_only_the_frame_whose_header_is_cut_began_in_the_chunk_before() -> None:
    headers = Headers()
    first, second = (headers.frame(number, h2.REQUEST, end_stream=True) for number in (1, 3))
    opening = h2.PREFACE + h2.settings()
    client = stream((0, opening + first[:4]), (10, first[4:] + second))
    turns = http2.decode(client, stream((1, h2.settings()))).turns
    assert [(ms(t.request_first), ms(t.request_last)) for t in turns] == [(0, 10), (10, 10)]
