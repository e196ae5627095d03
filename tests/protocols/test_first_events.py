"""The first events of a streamed answer."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.first_events import Content, FirstEvents, firsts_of
from netdiag.wire.tables import NONE

SSE = Content("text/event-stream")
WORD = b'data: {"choices":[{"delta":{"content":"hello"}}]}\n\n'
PING = b": ping\n\n"
ERROR = b'data: {"error":{"message":"overloaded"}}\n\n'


def fed(*pieces: bytes, content: Content = SSE) -> FirstEvents:
    firsts = firsts_of(content, to_report=False)
    assert firsts is not None
    for number, piece in enumerate(pieces):
        firsts.feed(piece, number)
    return firsts


def test_signs_of_life_are_no_events() -> None:
    firsts = fed(PING, WORD[:10], WORD[10:], WORD)
    assert (firsts.event, firsts.token, firsts.visible, firsts.told) == (2, 2, 2, True)


def test_nothing_yet() -> None:
    firsts = fed(PING, PING)
    assert (firsts.event, firsts.token, firsts.visible, firsts.told) == (NONE, NONE, NONE, False)


@given(st.lists(st.integers(1, 12), max_size=12))
def test_an_error_is_seen_however_it_is_cut(sizes: list[int]) -> None:
    firsts = fed(WORD)
    at = 0
    for size in sizes:
        firsts.search(ERROR[at : at + size])
        at += size
    firsts.search(ERROR[at:])
    assert firsts.may_tell_an_error
    assert firsts.asks_for_more


@pytest.mark.parametrize("event", [b'data: {"type":"response.failed"}\n\n', b"event: error\ndata: x\n\n", ERROR])
def test_also_behind_a_coding(event: bytes) -> None:
    assert fed(gzip.compress(WORD + event), content=Content("text/event-stream", ("gzip",))).asks_for_more
    assert not fed(gzip.compress(WORD), content=Content("text/event-stream", ("gzip",))).asks_for_more


def test_a_damaged_coding_asks_for_more() -> None:
    assert fed(b"no gzip at all", content=Content("text/event-stream", ("gzip",))).asks_for_more


def test_words_are_no_errors() -> None:
    assert not fed(WORD, WORD).asks_for_more
