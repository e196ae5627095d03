"""Captures that begin in the middle or lack octets, and octets cut anywhere."""

from __future__ import annotations

import pytest

from netdiag.protocols.http2 import frame_by_frame as http2
from netdiag.protocols.turn import Turn, TurnEnd
from tests.support import h2_bytes as h2
from tests.support.h2_bytes import Headers, Pair, frame
from tests.support.http2_talk import ms, opened
from tests.support.http_bytes import chunk, join, octet_by_octet, recut, stream


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


def test_a_stream_that_is_reset_in_the_middle_of_its_last_frame() -> None:
    asks, answers = Headers(), Headers()
    last = frame(h2.DATA, h2.END_STREAM, 1, b"data: 1\n\n" * 10)
    asked = h2.PREFACE + h2.settings() + asks.frame(1, h2.REQUEST, end_stream=True)
    begun = answers.frame(1, [(":status", "200"), ("content-type", "text/event-stream")]) + last[:50]
    client = stream((0, asked), (5, h2.rst(1, 8)))
    server = stream((0, h2.settings()), (2, begun), (6, last[50:]))
    (turn,) = http2.decode(client, server).turns
    assert (turn.end, turn.response_body_bytes, len(turn.events)) == (TurnEnd.RESET_BY_CLIENT, 0, 4)
