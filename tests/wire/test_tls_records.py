"""Following TLS record headers: in lock step, one by one, over holes, from the middle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.wire.streams import record_views, rows_of
from netdiag.wire.tables import NONE, SegmentKind, Segments
from netdiag.wire.tls_records import chain
from tests.support.conversation import CLIENT, MS, SERVER, Conversation, wire_of
from tests.support.record_streams import HELLO, contents, found, record, spread


@pytest.mark.parametrize("sizes", [[1], [3], [4, 1], [1460], [7, 400, 2], [100_000]])
def test_records_over_any_segment_boundaries(sizes: list[int]) -> None:
    records = [HELLO, record(200, kind=22), record(0), record(1), record(1200), record(16_384), record(5)]
    if sizes == [1]:
        records = records[:5]
    talk = Conversation().opens()
    spread(talk, CLIENT, b"".join(records), sizes)
    wire = talk.wire()
    assert [length for _, _, length in found(wire, CLIENT)] == [len(r) - 5 for r in records]
    assert contents(wire, CLIENT) == [r[5:] for r in records]


def test_times_and_packets_of_a_record_are_those_of_its_octets() -> None:
    talk = Conversation(step_ms=10).opens()
    spread(talk, SERVER, HELLO + record(30), [12])
    wire = talk.wire()
    table = chain(wire.buffer, wire.segments)
    hello, data = record_views(wire.buffer, wire.segments, table, rows_of(table, 0, SERVER))
    assert (hello.first_packet, hello.last_packet, hello.first_seen_at) == (4, 4, hello.last_seen_at)
    assert (data.first_packet, data.last_packet) == (4, 7)
    assert data.last_seen_at is not None
    assert data.last_seen_at - data.first_seen_at == 30 * MS
    assert data.deliverable_at == data.last_seen_at
    assert (data.missing_bytes, data.stream_offset, data.version) == (0, 10, 0x0303)


def test_a_record_is_deliverable_when_all_before_it_arrived() -> None:
    talk = Conversation().opens()
    lost = talk.server(HELLO, captured=False)
    talk.server(record(100))
    talk.after(200).again(lost)
    wire = talk.wire()
    table = chain(wire.buffer, wire.segments)
    hello, data = record_views(wire.buffer, wire.segments, table, rows_of(table, 0, SERVER))
    assert data.deliverable_at == hello.deliverable_at == hello.last_seen_at
    assert data.last_seen_at is not None
    assert data.deliverable_at is not None
    assert data.deliverable_at - data.last_seen_at == 200 * MS


def test_a_record_completed_by_a_retransmission_names_that_packet() -> None:
    talk = Conversation().opens()
    talk.server(HELLO)
    whole = record(300)
    talk.server(whole[:100])
    lost = talk.server(whole[100:200], captured=False)
    talk.server(whole[200:])
    talk.after(200).again(lost)
    wire = talk.wire()
    table = chain(wire.buffer, wire.segments)
    data = record_views(wire.buffer, wire.segments, table, rows_of(table, 0, SERVER))[1]
    assert (data.first_packet, data.last_packet) == (5, 7)
    assert data.fragment() == whole[5:]


def test_a_snap_length_cuts_contents_not_the_chain() -> None:
    talk = Conversation().opens()
    for length in (300, 400, 500):
        talk.server(record(length, kind=22))
    frames = [(at, frame) for at, frame in talk.frames]
    whole = wire_of(frames)
    cut = Segments(
        **{
            name: (
                np.minimum(whole.segments.captured_bytes, 60)
                if name == "captured_bytes"
                else getattr(whole.segments, name)
            )
            for name in Segments.__dataclass_fields__
        }
    )
    table = chain(whole.buffer, cut)
    assert table.length.tolist() == [300, 400, 500]
    assert table.missing_bytes.tolist() == [245, 345, 445]
    assert (table.deliverable_at != NONE).all()


def test_plain_text_is_not_tls() -> None:
    talk = Conversation().opens()
    talk.client(b"GET / HTTP/1.1\r\n\r\n")
    talk.server(b"HTTP/1.1 200 OK\r\n\r\n" + record(100))
    wire = talk.wire()
    assert len(chain(wire.buffer, wire.segments)) == 0
    assert len(chain(wire.buffer, wire.segments)) == 0


def test_tls_that_begins_later_in_the_stream() -> None:
    talk = Conversation().opens()
    talk.client(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n")
    talk.server(b"HTTP/1.1 200 OK\r\n\r\n")
    talk.client(HELLO + record(40))
    talk.server(HELLO)
    wire = talk.wire()
    table = chain(wire.buffer, wire.segments, np.array([0]), first_offsets={(0, 0): 36, (0, 1): 19})
    assert table.stream_offset.tolist() == [36, 46, 19]


@given(st.binary(max_size=400), st.binary(max_size=400))
@settings(max_examples=40, deadline=None)
def test_random_octets_end_the_chain_quietly(client: bytes, server: bytes) -> None:
    talk = Conversation().opens()
    if client:
        talk.client(HELLO + client)
    if server:
        talk.server(server)
    wire = talk.wire()
    table = chain(wire.buffer, wire.segments, np.array([0]))
    assert (table.length <= 16_384 + 2_048).all()
    for side in (CLIENT, SERVER):
        for view in record_views(wire.buffer, wire.segments, table, rows_of(table, 0, side)):
            assert len(view.fragment()) + view.missing_bytes >= view.length


def test_recorded_streams_without_packets_go_the_same_way() -> None:
    """What the probe's backend wrote and read: no packets, offsets into recorded octets."""
    pieces = [HELLO, record(100)[:60], record(100)[60:] + record(10)]
    sizes = np.array([len(p) for p in pieces], np.int64)
    offsets = np.cumsum(sizes) - sizes
    segments = Segments(
        connection=np.zeros(3, np.int32),
        direction=np.zeros(3, np.uint8),
        packet=np.full(3, NONE, np.int64),
        stream_offset=offsets,
        length=sizes,
        captured_bytes=sizes,
        payload_offset=offsets,
        seen_at=np.array([10, 20, 30], np.int64),
        deliverable_at=np.array([10, 20, 30], np.int64),
        kind=np.full(3, SegmentKind.NEW, np.uint8),
        new_offset=offsets,
    )
    buffer = b"".join(pieces)
    table = chain(buffer, segments)
    views = record_views(buffer, segments, table, slice(0, 3))
    assert [v.fragment() for v in views] == [HELLO[5:], record(100)[5:], record(10)[5:]]
    assert [(v.first_seen_at, v.deliverable_at, v.first_packet, v.last_packet) for v in views] == [
        (10, 10, None, None),
        (20, 30, None, None),
        (30, 30, None, None),
    ]
