"""What is read in brief against ``http1.decode``: the same turns and moments, or nothing at all."""

from __future__ import annotations

import gzip
from itertools import accumulate

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netdiag.analysis.brief import told
from netdiag.analysis.stream_timing import first_times
from netdiag.protocols import http1
from netdiag.protocols.brief_turn import BriefTurn, Octets
from netdiag.protocols.retry_marks import bears_mark
from netdiag.protocols.turn import Turn, TurnEnd
from netdiag.wire.chunk import Chunk, Moment
from netdiag.wire.tables import NONE
from tests.protocols.test_http_properties import EXCHANGES, Spoken, write_http1
from tests.support.http1_talk import GET, OK_5
from tests.support.http_bytes import LAST_CHUNK, chunked, head, mutate, recut, stream

Side = list[Chunk]


def octets(chunks: Side) -> Octets:
    return Octets(b"".join(c.data for c in chunks), list(accumulate(len(c.data) for c in chunks)))


def in_brief(client: Side, server: Side) -> list[BriefTurn] | None:
    said = told(octets(client), octets(server))
    return None if said is None else said.turns


def place(moment: Moment | None, chunks: Side) -> int:
    assert moment is not None
    return [c.offset for c in chunks].index(moment.chunk_offset)


def event_places(turn: Turn, server: Side) -> list[int]:
    """The chunks in which the firsts of ``first_times`` ended."""
    assert turn.request_first is not None
    found = []
    for ns in first_times(turn):
        events = [] if ns is None else [e for e in turn.events if e.deliverable_at - turn.request_first.seen_at == ns]
        found.append({e.packet for e in events})
    return [next((i for i, c in enumerate(server) if c.first_packet in packets), NONE) for packets in found]


def in_full(client: Side, server: Side) -> list[BriefTurn]:
    said = http1.decode(client, server)
    assert said.anomalies == []
    assert not said.tunnels
    found = []
    for turn in said.turns:
        assert turn.end is TurnEnd.COMPLETE
        assert turn.interim == []
        assert turn.grpc_status is None
        asked = [place(m, client) for m in (turn.request_first, turn.request_last)]
        answered = [place(m, server) for m in (turn.response_first, turn.response_last)]
        assert turn.status is not None
        marked = bears_mark(turn.request_headers)
        found.append(BriefTurn(turn.protocol, turn.status, marked, *asked, *answered, *event_places(turn, server)))
    return found


def numbered(client: Side, server: Side) -> tuple[Side, Side]:
    """Every chunk a packet and an instant of its own, no answer before its request."""
    return _from(0, client), _from(len(client), server)


def _from(first: int, side: Side) -> Side:
    return [Chunk(c.data, c.offset, i, i, i, i, i) for i, c in enumerate(side, first)]


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(exchanges=st.lists(EXCHANGES, min_size=1, max_size=4), cuts=st.lists(st.integers(0, 2000), max_size=20))
def test_the_same_turns_and_moments_or_nothing(exchanges: list[Spoken], cuts: list[int]) -> None:
    client, server = numbered(*(recut(side, cuts) for side in write_http1(exchanges)))
    brief = in_brief(client, server)
    assert brief is None or brief == in_full(client, server)


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(exchanges=st.lists(EXCHANGES, min_size=1, max_size=4))
def test_nothing_only_with_interim_responses(exchanges: list[Spoken]) -> None:
    client, server = write_http1(exchanges)
    assert (in_brief(client, server) is None) == any(spoken.interim for spoken in exchanges)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(exchanges=st.lists(EXCHANGES, min_size=1, max_size=3), seed=st.integers(0, 1 << 30))
def test_mutated_octets_are_read_alike_or_not_at_all(exchanges: list[Spoken], seed: int) -> None:
    whole = [b"".join(c.data for c in side) for side in write_http1(exchanges)]
    client, server = numbered(*(stream((0, mutate(data, seed + i))) for i, data in enumerate(whole)))
    brief = in_brief(client, server)
    assert brief is None or brief == in_full(client, server)


EVENTS = head("HTTP/1.1 200 OK\nContent-Type: text/event-stream\nTransfer-Encoding: chunked")
ROLE = b'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n'
TEXT = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
THOUGHT = b'data: {"choices":[{"delta":{"reasoning_content":"a"}}]}\n\n'


@pytest.mark.parametrize("cut", range(len(chunked(TEXT)) + 1))
def test_first_events_are_where_they_end_however_they_are_cut(cut: int) -> None:
    text = chunked(TEXT)
    pieces = [EVENTS, chunked(b": wait\n\n"), chunked(ROLE), chunked(THOUGHT), text[:cut], text[cut:], LAST_CHUNK]
    client, server = numbered(stream((0, GET)), stream(*((i, p) for i, p in enumerate(pieces) if p)))
    brief = in_brief(client, server)
    assert brief == in_full(client, server)
    assert brief is not None
    assert brief[0].first_event == 2
    assert brief[0].first_token == 3
    assert brief[0].first_visible >= 4


REPORT = head("POST /v1/messages HTTP/1.1\nContent-Length: 0")


def coded(content: bytes, kind: str = "application/json", coding: str = "gzip") -> bytes:
    """An answer with this content, as it is."""
    fields = f"Content-Type: {kind}\nContent-Encoding: {coding}\nContent-Length: {len(content)}"
    return head(f"HTTP/1.1 200 OK\n{fields}") + content


IRREGULAR = {
    "no request": (b"", OK_5 + b"hello"),
    "no answer": (GET, b""),
    "an answer too few": (GET + GET, OK_5 + b"hello"),
    "an answer too many": (GET, OK_5 + b"hello" + OK_5 + b"hello"),
    "a body cut short": (GET, OK_5 + b"hell"),
    "an interim response": (GET, head("HTTP/1.1 103 Early Hints") + OK_5 + b"hello"),
    "a body that the close ends": (GET, head("HTTP/1.1 200 OK") + b"hello"),
    "a tunnel": (head("CONNECT a:443 HTTP/1.1"), head("HTTP/1.1 200 OK\nContent-Length: 0")),
    "another protocol": (GET, head("HTTP/1.1 101 Switching\nUpgrade: websocket") + b"\x81\x00"),
    "a proxy's form": (head("GET http://a/ HTTP/1.1"), OK_5 + b"hello"),
    "a body held back": (head("POST / HTTP/1.1\nExpect: 100-continue\nContent-Length: 0"), OK_5 + b"hello"),
    "two lengths": (GET, head("HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length: 6") + b"hello"),
    "bare line feeds": (GET, OK_5.replace(b"\r\n", b"\n") + b"hello"),
    "trailers": (GET, EVENTS + b"0\r\nx-sum: 1\r\n\r\n"),
    "gRPC": (GET, head("HTTP/1.1 200 OK\nContent-Type: application/grpc\nContent-Length: 0")),
    "events behind a coding that is not known": (GET, coded(b"", "text/event-stream", "snappy")),
    "damaged events": (GET, coded(b"hello", "text/event-stream")),
    "a damaged report": (REPORT, coded(b"hello")),
    "HTTP/0.9": (b"GET /\r\n\r\n", b"hello"),
    "a load balancer's header": (b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n" + GET, OK_5 + b"hello"),
    "TLS": (b"\x16\x03\x01\x00\x05hello", b"\x16\x03\x03\x00\x05hello"),
}


@pytest.mark.parametrize("cut", range(0, 60, 7))
def test_coded_events_are_where_they_end_however_they_are_cut(cut: int) -> None:
    content = gzip.compress(ROLE + TEXT * 3, mtime=0)
    answer = coded(content, "text/event-stream")
    client, server = numbered(stream((0, GET)), recut(stream((1, answer)), [len(answer) - cut]))
    brief = in_brief(client, server)
    assert brief == in_full(client, server)
    assert brief is not None
    assert brief[0].first_visible != NONE


@pytest.mark.parametrize("what", list(IRREGULAR))
def test_is_left_to_the_decoder(what: str) -> None:
    client, server = IRREGULAR[what]
    assert in_brief(stream((0, client)), stream((1, server))) is None


REGULAR = {
    "a length": (GET, OK_5 + b"hello"),
    "an attempt of a call": (head("GET / HTTP/1.1\nX-Stainless-Retry-Count: 1"), OK_5 + b"hello"),
    "several": (GET + GET, (OK_5 + b"hello") * 2),
    "HEAD": (head("HEAD / HTTP/1.1"), OK_5),
    "no content": (GET, head("HTTP/1.1 304 Not Modified\nContent-Length: 5")),
    "HTTP/1.0": (head("GET / HTTP/1.0"), head("HTTP/1.0 200 OK\nContent-Length: 0")),
    "an upload in chunks": (
        head("PUT /a HTTP/1.1\nTransfer-Encoding: chunked") + chunked(b"x") + LAST_CHUNK,
        head("HTTP/1.1 500 No\nContent-Length: 0"),
    ),
    "coded content that reports nothing": (GET, coded(b"whatever")),
    "a coded report": (REPORT, coded(gzip.compress(b'{"usage": {"output_tokens": 3}}'))),
    "a report behind a coding that is not known": (REPORT, coded(b"whatever", coding="snappy")),
}


def test_a_head_may_go_on_in_the_next_chunk_but_not_its_first_line() -> None:
    ask, answer = head("GET / HTTP/1.1\nHost: example.com"), OK_5 + b"hello"
    for cut in range(1, len(ask)):
        client, server = numbered(recut(stream((0, ask)), [cut]), recut(stream((1, answer)), [cut]))
        brief = in_brief(client, server)
        assert (brief is None) == (cut < len("HTTP/1.1 200 OK\r\n"))
        assert brief is None or brief == in_full(client, server)


@pytest.mark.parametrize("what", list(REGULAR))
def test_is_read_as_the_decoder_does(what: str) -> None:
    client, server = numbered(*(stream((i, data)) for i, data in enumerate(REGULAR[what])))
    assert in_brief(client, server) == in_full(client, server)
