"""How streams end before their answer does: RST_STREAM, GOAWAY (RFC 9113 sections 6.4 and 6.8)."""

from __future__ import annotations

import pytest

from netdiag.protocols.http2 import frame_by_frame as http2
from netdiag.protocols.turn import TurnEnd
from tests.support import h2_bytes as h2
from tests.support.h2_bytes import Headers
from tests.support.http2_talk import ms, observe, opened
from tests.support.http_bytes import stream


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
