"""When the flow-control window stopped a sender (RFC 9113 section 5.2)."""

from __future__ import annotations

from netdiag.protocols.conversation import WindowStall
from netdiag.protocols.http2 import frame_by_frame as http2
from netdiag.wire.chunk import Chunk
from tests.support import h2_bytes as h2
from tests.support.h2_bytes import Headers, frame
from tests.support.http2_talk import ms
from tests.support.http_bytes import stream


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
