"""CONNECT on a stream (RFC 9113 section 8.5), extended CONNECT (RFC 8441): what the stream carries, and what its exchange still is."""

from __future__ import annotations

import pytest

from netdiag.protocols.conversation import Conversation, Tunnel
from netdiag.protocols.http2 import frame_by_frame as http2
from netdiag.protocols.http2 import tunnels
from netdiag.protocols.http2.columns import regular
from netdiag.protocols.turn import TurnEnd
from netdiag.wire.chunk import Chunk
from tests.support import h2_bytes as h2
from tests.support.http_bytes import MS, stream

ASK = [(":method", "CONNECT"), (":authority", "target.example:443")]
CHAT = [
    (":method", "CONNECT"),
    (":protocol", "websocket"),
    (":scheme", "https"),
    (":path", "/chat"),
    (":authority", "target.example"),
]
AGREED = [(":status", "200")]


class Talk:
    """Two streams' worth of frames by hand, each in a chunk of its own."""

    def __init__(self) -> None:
        self.client, self.server = h2.Headers(), h2.Headers()
        self.asked: list[tuple[float, bytes | str | int]] = [(0, h2.PREFACE + h2.settings())]
        self.answered: list[tuple[float, bytes | str | int]] = [(0, h2.settings())]

    def asks(self, at_ms: float, stream_id: int, fields: list[tuple[str, str]]) -> Talk:
        self.asked.append((at_ms, self.client.frame(stream_id, fields)))
        return self

    def answers(self, at_ms: float, stream_id: int, fields: list[tuple[str, str]], *, end: bool = False) -> Talk:
        self.answered.append((at_ms, self.server.frame(stream_id, fields, end_stream=end)))
        return self

    def sends(self, at_ms: float, stream_id: int, octets: bytes, flags: int = 0) -> Talk:
        self.asked.append((at_ms, h2.frame(h2.DATA, flags, stream_id, octets)))
        return self

    def receives(self, at_ms: float, stream_id: int, octets: bytes, flags: int = 0) -> Talk:
        self.answered.append((at_ms, h2.frame(h2.DATA, flags, stream_id, octets)))
        return self

    def chunks(self) -> tuple[list[Chunk], list[Chunk]]:
        return stream(*self.asked), stream(*self.answered)

    def heard(self) -> Conversation:
        return http2.decode(*self.chunks())


def connected() -> Talk:
    return Talk().asks(10, 1, ASK).answers(40, 1, AGREED)


def octets(tunnel: Tunnel) -> tuple[bytes, bytes]:
    return b"".join(c.data for c in tunnel.client), b"".join(c.data for c in tunnel.server)


def test_connect_becomes_a_tunnel_whose_octets_are_those_of_data() -> None:
    talk = connected().sends(50, 1, b"hel").sends(51, 1, b"lo").receives(90, 1, b"answer", h2.END_STREAM)
    said = talk.heard()
    (turn,), (tunnel,) = said.turns, said.tunnels
    assert (tunnel.kind, tunnel.target, tunnel.turn) == ("connect", "target.example:443", turn)
    assert octets(tunnel) == (b"hello", b"answer")
    assert [(c.offset, c.first_seen_at // MS, c.missing_before) for c in tunnel.client] == [(0, 50, 0), (3, 51, 0)]


def test_the_exchange_is_over_with_the_consent_whatever_the_tunnel_carries() -> None:
    talk = connected().sends(50, 1, b"x" * 1000).receives(9000, 1, b"y" * 1000, h2.END_STREAM).sends(9001, 1, b"", 1)
    (turn,) = talk.heard().turns
    assert (turn.end, turn.status) == (TurnEnd.TUNNEL, 200)
    assert turn.request_last is not None
    assert turn.response_last is not None
    assert (turn.request_last.seen_at // MS, turn.response_last.deliverable_at // MS) == (10, 40)
    assert (turn.request_body_bytes, turn.response_body_bytes) == (0, 0)


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_tunnel_that_is_reset_had_been_granted(side: str) -> None:
    talk = connected().sends(50, 1, b"hello")
    (talk.asked if side == "client" else talk.answered).append((60, h2.rst(1, 10)))
    said = talk.heard()
    assert [(t.end, t.error_code) for t in said.turns] == [(TurnEnd.TUNNEL, None)]
    assert octets(said.tunnels[0])[0] == b"hello"


def test_a_refused_connect_is_an_ordinary_answer() -> None:
    talk = Talk().asks(10, 1, ASK).answers(40, 1, [(":status", "502")]).receives(50, 1, b"no route", h2.END_STREAM)
    said = talk.heard()
    assert not said.tunnels
    (turn,) = said.turns
    assert (turn.end, turn.status, turn.response_body_bytes) == (TurnEnd.COMPLETE, 502, 8)


def test_tunnels_beside_each_other_keep_their_octets_apart() -> None:
    talk = connected().asks(45, 3, [*ASK[:1], (":authority", "other.example:443")]).answers(60, 3, AGREED)
    talk.sends(61, 3, b"three").sends(62, 1, b"one").receives(70, 3, b"THREE").receives(71, 1, b"ONE")
    said = talk.heard()
    assert [(t.target, octets(t)) for t in said.tunnels] == [
        ("target.example:443", (b"one", b"ONE")),
        ("other.example:443", (b"three", b"THREE")),
    ]


def test_a_websocket_over_http2_is_recognised_and_not_kept() -> None:
    talk = Talk().asks(10, 1, CHAT).answers(40, 1, AGREED).sends(50, 1, b"frame").receives(9000, 1, b"frame")
    said = talk.heard()
    ((turn,), (tunnel,)) = said.turns, said.tunnels
    assert (tunnel.kind, octets(tunnel)) == ("websocket", (b"", b""))
    assert (turn.end, turn.path) == (TurnEnd.TUNNEL, "/chat")


def test_octets_that_the_capture_lacks_are_missing_in_the_tunnel_where_they_were() -> None:
    talk = connected()
    whole = h2.frame(h2.DATA, 0, 1, b"abcdefgh")
    talk.asked += [(50, whole[:11]), (52, 3), (53, whole[14:])]
    talk.sends(60, 1, b"next")
    chunks = list(talk.heard().tunnels[0].client)
    assert [(c.data, c.offset, c.missing_before) for c in chunks] == [(b"ab", 0, 0), (b"fgh", 5, 3), (b"next", 8, 0)]


def test_what_tunnels_carry_is_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tunnels, "MOST_BYTES", 10)
    said = connected().sends(50, 1, b"12345678").sends(51, 1, b"123").receives(52, 1, b"1").heard()
    assert octets(said.tunnels[0]) == (b"12345678", b"")
    assert len([a for a in said.anomalies if "tunnels carry more" in a.reason]) == 1


def test_columns_leave_a_tunnel_to_the_other_decoder() -> None:
    assert regular.decode(*connected().chunks()) is None
