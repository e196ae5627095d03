"""Properties of the HTTP decoders over generated conversations: cut anywhere they say the same, mutated they never raise, cut short they say less.

h11 and h2 are the encoders, so what is decoded was written by somebody else.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass

import h11
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netdiag.protocols import http1
from netdiag.protocols.conversation import Conversation
from netdiag.protocols.http1_head import CUT_MARK
from netdiag.protocols.http2 import frame_by_frame as http2
from netdiag.protocols.turn import Turn, TurnEnd
from netdiag.wire.chunk import Chunk
from tests.support import h2_bytes
from tests.support.h2_bytes import REQUEST, Pair
from tests.support.http_bytes import chunk, head, mutate, recut

_TOKENS = st.sampled_from(["a", "x-request-id", "accept", "user-agent", "x-n"])
_VALUES = st.sampled_from(["1", "text/html", "v" * 90, "a, b"])
_FIELDS = st.lists(st.tuples(_TOKENS, _VALUES), max_size=3)
_BODIES = st.sampled_from([b"", b"x", b"GET / HTTP/1.1\r\n\r\n", b"data: 1\n\ndata: 2\n\n", b"y" * 300])


@dataclass(frozen=True)
class Spoken:
    """One exchange to be written."""

    method: str
    fields: list[tuple[str, str]]
    upload: bytes
    upload_chunked: bool
    interim: bool
    status: int
    content: bytes
    chunked: bool
    events: bool

    @property
    def answered(self) -> bytes:
        """The content that this answer may have."""
        return b"" if self.method == "HEAD" or self.status in (204, 304) else self.content


EXCHANGES = st.builds(
    Spoken,
    method=st.sampled_from(["GET", "HEAD", "POST", "PUT"]),
    fields=_FIELDS,
    upload=_BODIES,
    upload_chunked=st.booleans(),
    interim=st.booleans(),
    status=st.sampled_from([200, 204, 304, 404, 503]),
    content=_BODIES,
    chunked=st.booleans(),
    events=st.booleans(),
)


def write_http1(exchanges: list[Spoken]) -> tuple[list[Chunk], list[Chunk]]:
    """Both directions as h11 writes them: every exchange a chunk of each side, a millisecond apart."""
    client, server = h11.Connection(h11.CLIENT), h11.Connection(h11.SERVER)
    sides: tuple[list[Chunk], list[Chunk]] = ([], [])
    sent = [0, 0]

    def send(side: int, connection: h11.Connection, events: list[h11.Event], at_ms: int) -> None:
        data = b"".join(connection.send(e) or b"" for e in events)
        sides[side].append(chunk(data, at_ms, offset=sent[side], packet=at_ms + 1))
        sent[side] += len(data)
        other = server if side == 0 else client
        other.receive_data(data)
        while other.next_event() not in (h11.NEED_DATA, h11.PAUSED):
            pass

    for number, spoken in enumerate(exchanges):
        upload = spoken.upload if spoken.method in ("POST", "PUT") else b""
        framing = (
            [("transfer-encoding", "chunked")]
            if upload and spoken.upload_chunked
            else [("content-length", str(len(upload)))]
        )
        request = h11.Request(
            method=spoken.method, target=f"/{number}", headers=[("host", "h"), *spoken.fields, *framing]
        )
        send(0, client, [request, h11.Data(data=upload), h11.EndOfMessage()], 20 * number)
        if spoken.interim:
            send(1, server, [h11.InformationalResponse(status_code=103, headers=[])], 20 * number + 5)
        content = spoken.answered
        framing = [("transfer-encoding", "chunked")] if spoken.chunked else [("content-length", str(len(content)))]
        kind = [("content-type", "text/event-stream" if spoken.events else "text/plain")]
        response = h11.Response(status_code=spoken.status, headers=[*kind, *framing])
        send(1, server, [response, h11.Data(data=content), h11.EndOfMessage()], 20 * number + 10)
        client.start_next_cycle()
        server.start_next_cycle()
    return sides


def write_http2(exchanges: list[Spoken]) -> tuple[list[Chunk], list[Chunk]]:
    """The same over HTTP/2 as h2 writes it."""
    pair = Pair()
    pair.at(0)
    pair.at(1)
    for number, spoken in enumerate(exchanges):
        stream_id = 2 * number + 1
        pair.client.send_headers(
            stream_id,
            [(":method", spoken.method), *REQUEST[1:3], (":path", f"/{number}"), *spoken.fields],
            end_stream=not spoken.upload,
        )
        if spoken.upload:
            pair.client.send_data(stream_id, spoken.upload, end_stream=True)
        pair.at(20 * number + 10)
        if spoken.interim:
            pair.server.send_headers(stream_id, [(":status", "103")])
            pair.at(20 * number + 15)
        kind = "text/event-stream" if spoken.events else "text/plain"
        pair.server.send_headers(stream_id, [(":status", str(spoken.status)), ("content-type", kind)])
        pair.server.send_data(stream_id, spoken.answered, end_stream=not spoken.chunked)
        if spoken.chunked:
            pair.server.send_headers(stream_id, [("x-sum", "1")], end_stream=True)
        pair.at(20 * number + 20)
    return pair.from_client, pair.from_server


CODECS = {"http/1.1": (write_http1, http1.decode), "h2": (write_http2, http2.decode)}


def facts(conversation: Conversation) -> list[tuple[object, ...]]:
    """Everything but the moments."""

    def of(turn: Turn) -> tuple[object, ...]:
        return (
            turn.ordinal,
            turn.stream_id,
            turn.method,
            turn.path,
            turn.status,
            tuple(i.status for i in turn.interim),
            turn.request_headers,
            turn.response_headers,
            turn.trailers,
            (turn.request_bytes, turn.response_bytes, turn.request_body_bytes, turn.response_body_bytes),
            tuple((e.kind, e.size_bytes) for e in turn.events),
            turn.end,
        )

    return [of(t) for t in conversation.turns]


@pytest.mark.parametrize("protocol", list(CODECS))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(exchanges=st.lists(EXCHANGES, min_size=1, max_size=5))
def test_what_was_written_is_what_is_read(protocol: str, exchanges: list[Spoken]) -> None:
    write, decode = CODECS[protocol]
    conversation = decode(*write(exchanges))
    assert conversation.anomalies == []
    assert len(conversation.turns) == len(exchanges)
    for number, (turn, spoken) in enumerate(zip(conversation.turns, exchanges, strict=True)):
        assert (turn.method, turn.path, turn.status, turn.end) == (
            spoken.method,
            f"/{number}",
            spoken.status,
            TurnEnd.COMPLETE,
        )
        assert [i.status for i in turn.interim] == ([103] if spoken.interim else [])
        assert set(spoken.fields) <= set(turn.request_headers)
        if protocol == "h2":
            assert (turn.request_body_bytes, turn.response_body_bytes) == (len(spoken.upload), len(spoken.answered))


@pytest.mark.parametrize("protocol", list(CODECS))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(exchanges=st.lists(EXCHANGES, min_size=1, max_size=4), cuts=st.lists(st.integers(0, 2000), max_size=30))
def test_cut_anywhere_the_turns_are_the_same(protocol: str, exchanges: list[Spoken], cuts: list[int]) -> None:
    write, decode = CODECS[protocol]
    client, server = write(exchanges)
    whole, pieces = decode(client, server), decode(recut(client, cuts), recut(server, cuts))
    assert whole == pieces  # moments too: a piece keeps the time of the chunk it was cut from


@pytest.mark.parametrize("protocol", list(CODECS))
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(exchanges=st.lists(EXCHANGES, min_size=1, max_size=3), seed=st.integers(0, 1 << 30))
def test_mutated_octets_raise_nothing(protocol: str, exchanges: list[Spoken], seed: int) -> None:
    write, decode = CODECS[protocol]
    client, server = (
        [chunk(mutate(c.data, seed + i), c.deliverable_at / 1e6, packet=c.first_packet) for i, c in enumerate(side)]
        for side in write(exchanges)
    )
    turns = decode(client, server).turns
    assert [turn.ordinal for turn in turns] == list(range(len(turns)))


@pytest.mark.parametrize("protocol", list(CODECS))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    exchanges=st.lists(EXCHANGES, min_size=1, max_size=4),
    gaps=st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 1500), st.integers(1, 400), st.booleans()), min_size=1, max_size=4
    ),
)
def test_octets_missing_anywhere_raise_nothing_and_invent_nothing(
    protocol: str, exchanges: list[Spoken], gaps: list[tuple[int, int, int, bool]]
) -> None:
    write, decode = CODECS[protocol]
    sides = list(write(exchanges))
    whole = {(t.stream_id, t.path): t.status for t in decode(*sides).turns}
    for side, start, size, known in gaps:
        sides[side] = without(sides[side], start, start + size, known=known)
    for turn in decode(*sides).turns:
        if turn.path is not None and not turn.headers_incomplete and protocol == "http/1.1":
            assert (turn.stream_id, turn.path) in whole or not turn.path.startswith("/") or turn.path == "/"
        if protocol == "h2" and turn.path is not None:
            assert (turn.stream_id, turn.path) in whole


def without(chunks: list[Chunk], start: int, end: int, *, known: bool) -> list[Chunk]:
    """The direction with the octets from ``start`` to ``end`` not captured."""
    out: list[Chunk] = []
    missing = 0
    for piece in recut(chunks, [start, end]):
        missing += piece.missing_before
        if start <= piece.offset < end:
            missing += len(piece.data)
            continue
        gap = 0 if not missing else missing if known else -1
        out.append(
            Chunk(
                piece.data,
                piece.offset,
                piece.first_seen_at,
                piece.last_seen_at,
                piece.deliverable_at,
                piece.first_packet,
                piece.last_packet,
                gap,
            )
        )
        missing = 0
    return out


@pytest.mark.parametrize("protocol", list(CODECS))
def test_cut_at_every_octet_the_turns_are_a_beginning_of_the_whole(protocol: str) -> None:
    write, decode = CODECS[protocol]
    exchanges = [
        Spoken("POST", [("a", "1")], b"x", True, True, 200, b"data: 1\n\ndata: 2\n\n", True, True),
        Spoken("HEAD", [], b"", False, False, 404, b"", False, False),
    ]
    client, server = write(exchanges)
    whole = decode(client, server).turns
    for side, chunks in enumerate((client, server)):
        for end in range(sum(len(c.data) for c in chunks)):
            cut = [c for c in recut(chunks, [end]) if c.offset < end]
            turns = decode(cut, server).turns if side == 0 else decode(client, cut).turns
            assert len(turns) <= len(whole) + 1
            for turn in turns:
                if turn.status is not None and turn.method is not None:
                    found = [t for t in whole if (t.method, t.status) == (turn.method, turn.status)]
                    assert any(_is_path_or_its_beginning(turn.path, t.path) for t in found)


def _is_path_or_its_beginning(found: str | None, whole: str | None) -> bool:
    if found is not None and whole is not None and found.endswith(CUT_MARK):
        return whole.startswith(found.removesuffix(CUT_MARK))
    return found == whole


@pytest.mark.parametrize("protocol", ["http/1.1 length", "http/1.1 until close", "h2"])
def test_content_that_nobody_asks_for_is_not_copied(protocol: str) -> None:
    size = 16 << 20
    if protocol == "h2":
        headers = h2_bytes.Headers()
        heads = h2_bytes.settings() + headers.frame(1, h2_bytes.RESPONSE)
        server = heads + h2_bytes.frame(h2_bytes.DATA, 0, 1, b"x" * 16_384) * (size // 16_393)
        client = h2_bytes.PREFACE + h2_bytes.settings() + h2_bytes.Headers().frame(1, REQUEST, end_stream=True)
    else:
        client = head("GET / HTTP/1.1\nHost: h")
        server = (
            head(f"HTTP/1.1 200 OK{chr(10) + f'Content-Length: {size}' if 'length' in protocol else ''}") + b"x" * size
        )
    chunks = [chunk(client)], [chunk(server, 1)]
    tracemalloc.start()
    (turn,) = (http2 if protocol == "h2" else http1).decode(*chunks).turns
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert turn.response_body_bytes > size * 0.99
    assert peak < 1 << 20
