"""Octets of a direction in stream order, and its TLS records as a sequence."""

from __future__ import annotations

import pytest

from netdiag.wire import streams
from netdiag.wire.streams import record_views, rows_of
from netdiag.wire.tls_records import chain
from tests.support.conversation import CLIENT, SERVER, Conversation, Wire
from tests.support.record_streams import HELLO, record, spread


def test_chunks_are_contiguous_and_in_stream_order() -> None:
    talk = Conversation().opens()
    lost = talk.server(b"a" * 10, captured=False)
    talk.server(b"b" * 10)
    talk.after(300).again(lost)
    chunks = talk.wire().chunks(SERVER)
    assert [(chunk.offset, chunk.data[:1], chunk.missing_before) for chunk in chunks] == [(0, b"a", 0), (10, b"b", 0)]
    assert [(chunk.first_packet, chunk.last_packet) for chunk in chunks] == [(5, 5), (4, 5)]


def test_what_the_capture_lost_is_counted_in_the_next_chunk() -> None:
    talk = Conversation().opens()
    talk.server(b"a" * 10)
    talk.server(b"b" * 7, captured=False)
    talk.server(b"c" * 10)
    talk.acks_everything(CLIENT)
    assert [(chunk.offset, chunk.missing_before) for chunk in talk.wire().chunks(SERVER)] == [(0, 0), (17, 7)]


def test_what_a_client_never_got_is_left_out() -> None:
    talk = Conversation().opens()
    talk.server(b"a" * 10)
    talk.server(b"b" * 7, captured=False)
    talk.server(b"c" * 10)
    talk.acks(CLIENT, 10)
    assert talk.wire().octets(SERVER) == b"a" * 10


def test_rows_of_a_direction_that_said_nothing_are_none() -> None:
    talk = Conversation().opens()
    talk.client(b"hello")
    segments = talk.wire().segments
    assert [rows_of(segments, 0, side) for side in (CLIENT, SERVER)] == [slice(0, 1), slice(1, 1)]


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """Seven records; rows become values three at a time."""
    monkeypatch.setattr(streams, "_BLOCK", 3)
    talk = Conversation().opens()
    spread(talk, SERVER, HELLO + b"".join(record(100 + i, seed=i) for i in range(6)), [90])
    return talk.wire()


def test_records_are_a_sequence(wire: Wire) -> None:
    table = chain(wire.buffer, wire.segments)
    views = record_views(wire.buffer, wire.segments, table, rows_of(table, 0, SERVER))
    lengths = [5, 100, 101, 102, 103, 104, 105]
    assert len(views) == 7
    assert [view.length for view in views] == lengths
    assert [views[i].length for i in (6, 0, 3, -1)] == [105, 5, 102, 105]
    assert [view.length for view in views[1:6:2]] == lengths[1:6:2]
    for outside in (7, -8):
        with pytest.raises(IndexError):
            views[outside]


def test_rows_say_what_views_say(wire: Wire) -> None:
    table = chain(wire.buffer, wire.segments)
    views = record_views(wire.buffer, wire.segments, table, rows_of(table, 0, SERVER))
    for start in (0, 2, 3, 6):
        rows = list(views.rows(start))
        assert [views.content(row) for row in rows] == [view.fragment() for view in views[start:]]
        assert [row[3] for row in rows] == [view.stream_offset for view in views[start:]]
    assert list(views.rows(7)) == []


def test_records_that_lack_octets_are_counted_by_type() -> None:
    talk = Conversation().opens()
    talk.server(HELLO + record(50)[:20])
    talk.server(record(50)[20:], captured=False)
    talk.server(record(40))
    talk.acks_everything(CLIENT)
    wire = talk.wire()
    table = chain(wire.buffer, wire.segments)
    views = record_views(wire.buffer, wire.segments, table, rows_of(table, 0, SERVER))
    assert (views.lacking(23), views.lacking(22)) == ((2, 1), (1, 0))
