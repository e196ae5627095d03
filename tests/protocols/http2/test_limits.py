"""Floods and bombs are bounded, and what is no conversation raises nothing."""

from __future__ import annotations

import pytest

from netdiag.protocols.http2 import frame_by_frame as http2
from netdiag.protocols.http2.streams import MAX_LIVE_STREAMS
from netdiag.protocols.turn import TurnEnd
from tests.support import h2_bytes as h2
from tests.support.h2_bytes import Headers, frame
from tests.support.http_bytes import stream


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
