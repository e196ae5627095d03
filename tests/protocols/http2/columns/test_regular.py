"""HTTP/2 by columns against the decoder that takes frame after frame: never another answer, and an answer for what is ordinary."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.protocols.conversation import Conversation
from netdiag.protocols.http2 import either as h2_either
from netdiag.protocols.http2 import frame_by_frame as http2
from netdiag.protocols.http2.columns import direction as h2_direction
from netdiag.protocols.http2.columns import regular as h2_regular
from netdiag.protocols.http2.columns.turns import ColumnTurns
from netdiag.protocols.turn import Turn
from netdiag.wire.chunk import Chunk, Moment
from tests.support import h2_bytes as h2
from tests.support import h2_talk
from tests.support.http_bytes import stream

MOMENTS = [name for name, kind in Turn.__annotations__.items() if kind == "Moment | None"]


def carriers(turns: list[Turn]) -> list[tuple[int, int]]:
    """Where the octets of each moment lay, which does not count when moments are compared."""
    moments = (getattr(turn, name) for turn in turns for name in MOMENTS)
    return [(m.chunk_offset, m.chunk_bytes) for m in moments if isinstance(m, Moment)]


def check_agreement(by_columns: Conversation | None, chunks: tuple[list[Chunk], list[Chunk]]) -> bool:
    """Whether it was taken; it is what the other decoder says then."""
    one_by_one = http2.decode(*chunks)
    if by_columns is None:
        return False
    assert list(by_columns.turns) == one_by_one.turns
    assert carriers(list(by_columns.turns)) == carriers(list(one_by_one.turns))
    assert by_columns.h2 == one_by_one.h2
    assert one_by_one.anomalies == by_columns.anomalies == []
    assert isinstance(by_columns.turns, ColumnTurns)
    told = {fields for turn in one_by_one.turns for fields in (turn.request_headers, turn.response_headers)}
    assert {*by_columns.turns.headers(), ()} == {*told, ()}
    return True


@given(st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=50, deadline=None)
def test_what_is_ordinary_is_taken_and_equal(rng: random.Random, cut: bool) -> None:
    chunks = h2_talk.ordinary(rng).chunks(cut=cut, late=False)
    assert check_agreement(h2_regular.decode(*chunks), chunks)


@given(st.randoms(use_true_random=False), st.sampled_from([0, 1200, 1800, 2500]))
@settings(max_examples=60, deadline=None)
def test_who_waited_for_whose_window(rng: random.Random, window: int) -> None:
    chunks = h2_talk.ordinary(rng, most=12, window=window).chunks(cut=False, late=False)
    assert check_agreement(h2_regular.decode(*chunks), chunks)


@given(st.randoms(use_true_random=False), st.booleans(), st.booleans())
@settings(max_examples=100, deadline=None)
def test_what_is_odd_is_left_or_equal(rng: random.Random, cut: bool, late: bool) -> None:
    client, server = h2_talk.odd(rng).chunks(cut=cut, late=late)
    if rng.random() < 0.1:
        server = h2_talk.with_a_gap(server, rng)
    check_agreement(h2_regular.decode(client, server), (client, server))


@given(st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_blocks_may_end_anywhere(rng: random.Random) -> None:
    chunks = h2_talk.ordinary(rng, most=20).chunks(cut=True, late=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(h2_direction, "BLOCK_BYTES", rng.choice((24, 60, 300)))
        assert check_agreement(h2_regular.decode(*chunks), chunks)


@given(st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_either_says_what_one_by_one_says(rng: random.Random) -> None:
    client, server = h2_talk.odd(rng).chunks(cut=False, late=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(h2_either, "WORTH_BYTES", rng.choice((0, 60, 4096)))
        patch.setattr(h2_either, "WORTH_REQUESTS", rng.choice((0, 2)))
        found = h2_either.decode(iter(client), iter(server))
    wanted = http2.decode(client, server)
    assert found is not None
    assert (list(found.turns), found.h2, found.anomalies) == (wanted.turns, wanted.h2, wanted.anomalies)


def test_a_long_connection_that_turns_out_odd_has_to_be_heard_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(h2_either, "WORTH_BYTES", 0)
    monkeypatch.setattr(h2_either, "WORTH_REQUESTS", 0)
    monkeypatch.setattr(h2_either, "_KEPT_BYTES", 100)
    client, server = (list(side) for side in _many_requests(20))
    assert h2_either.decode(iter(client), iter(server)) is not None
    client.append(stream((99, h2.rst(41, 8)))[0])
    server = [*server[:-1]]
    client[-1:] = stream((99, h2.frame(h2.CONTINUATION, h2.END_HEADERS, 1)))
    assert h2_either.decode(iter(client), iter(server)) is None


def test_many_requests_are_worth_it_and_a_large_upload_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    found = h2_either.decode(*_many_requests(400))
    assert found is not None
    assert isinstance(found.turns, ColumnTurns)
    few, answers = (list(side) for side in _many_requests(5))
    grants = [h2.window_update(0, 1000)] * 2000
    client = stream(*((float(i), octets) for i, octets in enumerate([few[0].data, few[1].data, *grants])))
    found = h2_either.decode(client, answers)
    assert found is not None
    assert isinstance(found.turns, list)
    assert found.turns == http2.decode(client, answers).turns


def _many_requests(count: int) -> Iterator[list[Chunk]]:
    asks, answers = h2.Headers(), h2.Headers()
    ids = range(1, 2 * count, 2)
    requests = [asks.frame(stream_id, h2.REQUEST, end_stream=True) for stream_id in ids]
    yield stream((0, h2.PREFACE + h2.settings()), *((10.0 * i, octets) for i, octets in enumerate(requests, 1)))
    replies = [answers.frame(i, h2.RESPONSE) + h2.frame(h2.DATA, h2.END_STREAM, i, b"ok") for i in ids]
    yield stream((0, h2.settings()), *((10.0 * i + 1, octets) for i, octets in enumerate(replies, 1)))


def test_too_many_frames_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = [list(side) for side in _many_requests(20)]
    assert h2_regular.decode(*sides) is not None
    monkeypatch.setattr(h2_direction, "MOST_FRAMES", 20)
    assert h2_regular.decode(*sides) is None


def test_turns_are_a_sequence_that_can_be_sent_elsewhere() -> None:
    said = h2_regular.decode(*_many_requests(300))
    assert said is not None
    turns = said.turns
    assert (len(turns), turns[-1].stream_id, [t.stream_id for t in turns[1:3]]) == (300, 599, [3, 5])
    with pytest.raises(IndexError):
        turns[300]
    sent = pickle.dumps(turns)
    assert list(pickle.loads(sent)) == list(turns)  # noqa: S301 (what was just written)
    assert len(sent) < 300 * 250


def test_many_requests_with_the_same_fields_share_one_section() -> None:
    said = h2_regular.decode(*_many_requests(500))
    assert said is not None
    assert isinstance(said.turns, ColumnTurns)
    # The first block fills the table, the second refers to it, as all others do.
    assert len(said.turns.requests) == len(said.turns.responses) == 1
