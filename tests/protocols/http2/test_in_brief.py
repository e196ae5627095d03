"""HTTP/2 told in brief against the decoder that takes frame after frame: the same instants of the same turns, or nothing at all."""

from __future__ import annotations

import gzip
import random
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.analysis.brief import PROTOCOLS, Chunks, Instants, rows_of, told
from netdiag.analysis.exchanges import turn_marks
from netdiag.analysis.marks import Milestone
from netdiag.analysis.outcomes import by_status
from netdiag.analysis.stream_timing import first_times
from netdiag.protocols.brief_turn import Octets
from netdiag.protocols.conversation import SERVER
from netdiag.protocols.http2 import frame_by_frame as http2
from netdiag.protocols.retry_marks import bears_mark
from netdiag.protocols.turn import Turn, TurnEnd
from netdiag.wire.chunk import Chunk
from netdiag.wire.tables import NONE
from tests.support import h2_bytes as h2
from tests.support import h2_talk
from tests.support.http_bytes import stream

M = Milestone
Side = list[Chunk]
MOMENTS = (M.REQUEST_FIRST, M.REQUEST_LAST, M.RESPONSE_FIRST, M.RESPONSE_LAST)


def octets(side: Side) -> Octets:
    return Octets(b"".join(c.data for c in side), list(accumulate(len(c.data) for c in side)))


def chunks(side: Side) -> Chunks:
    columns = zip(
        *((c.first_seen_at, c.last_seen_at, c.deliverable_at, c.first_packet or NONE) for c in side), strict=True
    )
    return Chunks(range(len(side)), Instants(*columns))


def in_brief(client: Side, server: Side) -> list[tuple[object, ...]]:
    """Protocol, status, instants and settings of each turn; nothing where it is left to the decoder."""
    said = told(octets(client), octets(server))
    rows = [] if said is None else rows_of(0, said, chunks(client), chunks(server), (NONE, NONE))
    assert [row[1] for row in rows] == list(range(len(rows)))
    return [(PROTOCOLS[row[2]], *row[3:12], row[-1]) for row in rows]


def in_full(client: Side, server: Side) -> list[tuple[object, ...]]:
    said = http2.decode(client, server)
    assert said.anomalies == []
    assert said.h2 is not None
    settings = said.h2.first_settings(SERVER)
    return [(*of(turn), NONE if settings is None else settings.moment.deliverable_at) for turn in said.turns]


def of(turn: Turn) -> tuple[object, ...]:
    assert turn.end is TurnEnd.COMPLETE
    assert turn.interim == []
    assert not turn.pushed
    assert by_status(turn.status, turn.grpc_status) is by_status(turn.status, None)
    marks = turn_marks(turn)
    assert set(marks) == set(MOMENTS)
    sent_at = marks[M.REQUEST_FIRST].at
    firsts = (NONE if ns is None else sent_at + ns for ns in first_times(turn))
    return (
        turn.protocol,
        turn.status,
        bears_mark(turn.request_headers),
        *(marks[moment].at for moment in MOMENTS),
        *firsts,
    )


def equal_or_left(client: Side, server: Side) -> bool:
    """Whether it is told; what is told is what the decoder says."""
    brief = in_brief(client, server)
    if brief:
        assert brief == in_full(client, server)
    return bool(brief)


@given(st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=150, deadline=None)
def test_what_is_ordinary_is_equal_or_left(rng: random.Random, cut: bool) -> None:
    equal_or_left(*h2_talk.ordinary(rng, most=6).chunks(cut=cut, late=False))


@given(st.randoms(use_true_random=False), st.booleans(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_what_is_odd_is_equal_or_left(rng: random.Random, cut: bool, late: bool) -> None:
    equal_or_left(*h2_talk.odd(rng).chunks(cut=cut, late=late))


OPENING = h2.settings(s3=100)
EVENTS = [(":status", "200"), ("content-type", "text/event-stream")]
TEXT = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'


def talk(*answer: bytes, ask: bytes = b"") -> tuple[Side, Side]:
    """One request, and what the server says after its SETTINGS, a chunk for each."""
    request = ask or h2.Headers().frame(1, h2.REQUEST, end_stream=True)
    client = stream((0, h2.PREFACE + OPENING), (1, request))
    return client, stream((1, OPENING), *((10 + i, octets) for i, octets in enumerate(answer)))


def response(*, end_stream: bool = False, fields: list[tuple[str, str]] | None = None) -> bytes:
    return h2.Headers().frame(1, fields or h2.RESPONSE, end_stream=end_stream)


GZIP = ("content-encoding", "gzip")
CODED = gzip.compress(TEXT * 3, mtime=0)
REGULAR = {
    "coded events": [
        response(fields=[*EVENTS, GZIP]),
        h2.frame(h2.DATA, 0, 1, CODED[:15]),
        h2.frame(h2.DATA, h2.END_STREAM, 1, CODED[15:]),
    ],
    "no content": [response(end_stream=True)],
    "content": [response(), h2.frame(h2.DATA, h2.END_STREAM, 1, b"hello")],
    "content in pieces": [response(), h2.frame(h2.DATA, 0, 1, b"he"), h2.frame(h2.DATA, h2.END_STREAM, 1, b"")],
    "other frames between": [response(), h2.window_update(0, 5), h2.SETTINGS_ACK, h2.frame(h2.DATA, h2.END_STREAM, 1)],
    "an end in order": [response(end_stream=True), h2.goaway(1)],
    "events": [
        response(fields=EVENTS),
        h2.frame(h2.DATA, 0, 1, b": wait\n\n"),
        h2.frame(h2.DATA, 0, 1, TEXT[:20]),
        h2.frame(h2.DATA, 0, 1, TEXT[20:] + TEXT),
        h2.frame(h2.DATA, h2.END_STREAM, 1, b"data: [DONE]\n\n"),
    ],
}


@pytest.mark.parametrize("what", list(REGULAR))
def test_is_told(what: str) -> None:
    assert equal_or_left(*talk(*REGULAR[what]))


IRREGULAR = {
    "no answer": [],
    "half an answer": [response(), h2.frame(h2.DATA, 0, 1, b"he")],
    "half a frame": [response(), h2.frame(h2.DATA, h2.END_STREAM, 1, b"hello")[:-1]],
    "a reset": [response(), h2.rst(1, 8)],
    "refused by GOAWAY": [h2.goaway(0), response(end_stream=True)],
    "interim": [response(fields=[(":status", "103")]), response(end_stream=True)],
    "gRPC": [response(fields=[(":status", "200"), ("grpc-status", "0")], end_stream=True)],
    "padding": [response(), h2.frame(h2.DATA, h2.END_STREAM | h2.PADDED, 1, b"\1x\0")],
    "another stream": [response(end_stream=True), h2.Headers().frame(2, h2.RESPONSE, end_stream=True)],
    "a block in pieces": [h2.frame(h2.HEADERS, h2.END_STREAM, 1, b""), h2.frame(h2.CONTINUATION, h2.END_HEADERS, 1)],
    "a block that says nothing known": [h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, 1, b"\xfe")],
    "events behind a coding that is not known": [
        response(fields=[*EVENTS, ("content-encoding", "snappy")]),
        h2.frame(h2.DATA, h2.END_STREAM, 1, TEXT),
    ],
    "damaged events": [response(fields=[*EVENTS, GZIP]), h2.frame(h2.DATA, h2.END_STREAM, 1, TEXT)],
}


@pytest.mark.parametrize("what", list(IRREGULAR))
def test_is_left_to_the_decoder(what: str) -> None:
    assert in_brief(*talk(*IRREGULAR[what])) == []


def test_a_tunnel_is_left_to_the_decoder() -> None:
    ask = h2.Headers().frame(1, [(":method", "CONNECT"), (":authority", "a:443")])
    assert in_brief(*talk(response(end_stream=True), ask=ask)) == []


def test_an_answer_seen_before_its_request_is_left_to_the_decoder() -> None:
    client, server = talk(response(end_stream=True))
    assert equal_or_left(client, server)
    late = [client[0], *stream((50, client[1].data))]
    assert in_brief(late, server) == []


def test_many_requests_are_left_to_columns() -> None:
    headers = h2.Headers()
    asks = b"".join(headers.frame(2 * i + 1, h2.REQUEST, end_stream=True) for i in range(65))
    replies = h2.Headers()
    answers = [replies.frame(2 * i + 1, h2.RESPONSE, end_stream=True) for i in range(65)]
    assert in_brief(*talk(*answers, ask=asks)) == []
