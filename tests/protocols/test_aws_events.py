"""Bedrock's event streams, framed as botocore reads them."""

from __future__ import annotations

import base64
import json
import struct
from binascii import crc32

from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.anomalies import AnomalyLog
from netdiag.protocols.event_body import open_event_body
from netdiag.protocols.turn import Turn
from netdiag.records.stream import EventKind as K
from netdiag.wire.chunk import Moment


def message(payload: object, *, type_: str = "chunk", kind: str = "event") -> bytes:
    headers = b""
    for name, value in ((":event-type", type_), (":content-type", "application/json"), (":message-type", kind)):
        headers += bytes((len(name),)) + name.encode() + b"\7" + struct.pack(">H", len(value)) + value.encode()
    headers += b"\3num\4\0\0\0\1" + b"\4flag\0"
    body = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(body), len(headers))
    whole = prelude + struct.pack(">I", crc32(prelude)) + headers + body
    return whole + struct.pack(">I", crc32(whole))


def inner(event: object) -> bytes:
    return message({"bytes": base64.b64encode(json.dumps(event).encode()).decode(), "p": "abc"})


def read(octets: bytes, step: int = 7) -> Turn:
    body = open_event_body((("content-type", "application/vnd.amazon.eventstream"),), "/model/x", AnomalyLog("x"))
    assert body is not None
    for i in range(0, len(octets), step):
        body.feed(octets[i : i + step], Moment(i, i, None))
    turn = Turn(ordinal=0, protocol="h2")
    body.finish(turn)
    return turn


def test_the_models_own_events_inside_chunks() -> None:
    turn = read(
        inner({"type": "message_start", "message": {"usage": {"output_tokens": 1}}})
        + inner({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hi"}})
        + inner(
            {
                "type": "message_stop",
                "amazon-bedrock-invocationMetrics": {
                    "outputTokenCount": 12,
                    "invocationLatency": 1500,
                    "firstByteLatency": 400,
                },
            }
        )
    )
    assert [e.kind for e in turn.events] == [K.ROLE, K.TEXT, K.DONE]
    assert (turn.stream_api, turn.tokens) == ("anthropic", 12)
    assert {(t.name, t.ns) for t in turn.reported_times} == {("total", 1_500_000_000), ("first-token", 400_000_000)}


def test_converse() -> None:
    turn = read(
        message({"role": "assistant"}, type_="messageStart")
        + message({"delta": {"reasoningContent": {"text": "hm"}}}, type_="contentBlockDelta")
        + message({"delta": {"text": "Hi"}}, type_="contentBlockDelta")
        + message({"delta": {"toolUse": {"input": "{"}}}, type_="contentBlockDelta")
        + message({"stopReason": "end_turn"}, type_="messageStop")
        + message({"usage": {"outputTokens": 9}, "metrics": {"latencyMs": 700}}, type_="metadata")
    )
    assert [e.kind for e in turn.events] == [K.ROLE, K.REASONING, K.TEXT, K.TOOL, K.DONE, K.USAGE]
    assert (turn.stream_api, turn.tokens) == ("bedrock", 9)
    assert [(t.name, t.ns) for t in turn.reported_times] == [("total", 700_000_000)]


def test_an_exception_is_an_error() -> None:
    assert [
        e.kind for e in read(message({"message": "slow down"}, type_="throttlingException", kind="exception")).events
    ] == [K.ERROR]


@given(st.integers(1, 200))
def test_sizes_add_up_however_the_octets_are_cut(step: int) -> None:
    octets = message({"a": 1}, type_="metadata") + inner({"b": 2}) + message([], type_="x")
    assert sum(e.size_bytes for e in read(octets, step).events) == len(octets)


@given(st.binary(max_size=100))
def test_any_octets_are_accepted(octets: bytes) -> None:
    for some in (octets, message({}, type_="chunk")[:12] + octets * 3, message({"bytes": "!"}) + octets):
        assert sum(e.size_bytes for e in read(some).events) <= len(some)
