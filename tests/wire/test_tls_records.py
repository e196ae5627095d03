"""Following TLS record headers: in lock step, one by one, over holes, from the middle."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.wire import record_lanes, record_steps
from netdiag.wire.streams import record_views, rows_of
from netdiag.wire.tables import NONE, SegmentKind, Segments
from netdiag.wire.tls_records import chain, looks_like_tls
from tests.support.conversation import CLIENT, MS, SERVER, Conversation, Wire, wire_of

HELLO = b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"


def record(length: int, *, kind: int = 23, seed: int = 0) -> bytes:
    """One record with random content."""
    content = random.Random(seed + length).randbytes(length)
    return bytes([kind, 3, 3]) + length.to_bytes(2, "big") + content


def spread(talk: Conversation, side: int, octets: bytes, sizes: list[int]) -> None:
    """``octets`` in segments of the given sizes, over and over."""
    at = turn = 0
    while at < len(octets):
        size = sizes[turn % len(sizes)]
        talk.say(side, octets[at : at + size])
        at, turn = at + size, turn + 1


def found(wire: Wire, side: int, connection: int = 0) -> list[tuple[int, int, int]]:
    """(stream offset, type, length) of each record of one direction."""
    table = chain(wire.buffer, wire.segments)
    part = table.take(rows_of(table, connection, side))
    return list(zip(part.stream_offset.tolist(), part.content_type.tolist(), part.length.tolist(), strict=True))


def contents(wire: Wire, side: int, connection: int = 0) -> list[bytes]:
    table = chain(wire.buffer, wire.segments)
    return [v.fragment() for v in record_views(wire.buffer, wire.segments, table, rows_of(table, connection, side))]


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


def test_a_gap_inside_a_record_leaves_the_chain_whole() -> None:
    talk = Conversation().opens()
    talk.server(HELLO)
    whole = record(3000)
    talk.server(whole[:1000])
    talk.server(whole[1000:2000], captured=False)
    talk.server(whole[2000:] + record(50))
    talk.acks_everything(CLIENT)
    wire = talk.wire()
    assert [r[2] for r in found(wire, SERVER)] == [5, 3000, 50]
    table = chain(wire.buffer, wire.segments)
    data = record_views(wire.buffer, wire.segments, table, rows_of(table, 0, SERVER))[1]
    assert (data.missing_bytes, data.fragment()) == (1000, whole[5:1000])
    assert data.deliverable_at is not None


@pytest.mark.parametrize("at_segment_start", [True, False])
def test_after_a_gap_that_hides_a_header_records_in_a_row_take_the_chain_up_again(at_segment_start: bool) -> None:
    talk = Conversation().opens()
    talk.server(HELLO)
    talk.server(record(900) + record(800), captured=False)
    tail = b"".join(record(400, seed=i) for i in range(6))
    talk.server(tail if at_segment_start else record(700)[-50:] + tail)
    talk.acks_everything(CLIENT)
    wire = talk.wire()
    assert [r[2] for r in found(wire, SERVER)] == [5] + [400] * 6


def test_a_record_that_the_capture_ends_in_is_incomplete() -> None:
    talk = Conversation().opens()
    talk.server(HELLO)
    talk.server(record(5000)[:1000])
    wire = talk.wire()
    table = chain(wire.buffer, wire.segments)
    data = record_views(wire.buffer, wire.segments, table, rows_of(table, 0, SERVER))[1]
    assert (data.last_seen_at, data.deliverable_at, data.last_packet) == (None, None, None)
    assert data.missing_bytes == 4005


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


def test_a_capture_that_begins_inside_a_record() -> None:
    talk = Conversation()
    talk.server(record(2000)[1500:] + b"".join(record(100 + i) for i in range(5)))
    talk.server(record(77))
    wire = talk.wire()
    assert looks_like_tls(wire.buffer, wire.segments).tolist() == [False]
    assert chain(wire.buffer, wire.segments, np.array([0])).length.tolist() == [100, 101, 102, 103, 104, 77]


def test_a_capture_that_begins_at_a_record() -> None:
    talk = Conversation()
    talk.server(b"".join(record(100 + i) for i in range(5)))
    wire = talk.wire()
    assert looks_like_tls(wire.buffer, wire.segments).tolist() == [True]
    assert [r[2] for r in found(wire, SERVER)] == [100, 101, 102, 103, 104]


def test_plain_text_is_not_tls() -> None:
    talk = Conversation().opens()
    talk.client(b"GET / HTTP/1.1\r\n\r\n")
    talk.server(b"HTTP/1.1 200 OK\r\n\r\n" + record(100))
    wire = talk.wire()
    assert looks_like_tls(wire.buffer, wire.segments).tolist() == [False]
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


def test_an_ssl_2_compatible_hello_comes_first() -> None:
    hello = bytes.fromhex("802e 01 0302") + bytes(43)
    talk = Conversation().opens()
    talk.client(hello + record(20, kind=22))
    talk.server(record(70, kind=22))
    wire = talk.wire()
    assert found(wire, CLIENT) == [(0, 128, 46), (48, 22, 20)]
    assert contents(wire, CLIENT)[0] == hello[2:]


def test_a_chain_that_breaks_off_ends() -> None:
    talk = Conversation().opens()
    talk.client(HELLO + record(30) + b"this is no record header at all")
    assert [r[2] for r in found(talk.wire(), CLIENT)] == [5, 30]


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_lock_step_and_one_by_one_find_the_same(data: st.DataObject) -> None:
    """Many streams of random records in random segments with random losses: both ways of walking agree with each other and, where nothing
    is missing, with the truth."""
    count = data.draw(st.integers(1, 12))
    frames, truth = [], []
    for i in range(count):
        lengths = data.draw(st.lists(st.integers(0, 900), min_size=1, max_size=30))
        lost = data.draw(st.sets(st.integers(0, 40), max_size=2))
        octets = HELLO + b"".join(record(length, seed=i) for length in lengths)
        talk = Conversation(client=("10.0.0.1", 40000 + i)).opens()
        size = data.draw(st.integers(1, 1460)) + 40
        for turn, at in enumerate(range(0, len(octets), size)):
            talk.say(SERVER, octets[at : at + size], captured=turn not in lost)
        talk.acks_everything(CLIENT)
        frames += talk.frames
        truth.append(None if lost else [5, *lengths])
    wire = wire_of(frames)
    step_by_step = chain(wire.buffer, wire.segments)
    few, many = record_steps.FEW, record_steps.MANY_STEPS
    record_steps.FEW, record_steps.MANY_STEPS = 10**9, 0
    try:
        one_by_one = chain(wire.buffer, wire.segments)
    finally:
        record_steps.FEW, record_steps.MANY_STEPS = few, many
    for name in type(step_by_step).__dataclass_fields__:
        assert (getattr(step_by_step, name) == getattr(one_by_one, name)).all(), name
    for i, lengths in enumerate(truth):
        if lengths is not None:
            assert step_by_step.length[step_by_step.connection == i].tolist() == lengths


@pytest.mark.parametrize("treacherous", [False, True])
@pytest.mark.parametrize("tail", [b"", b"\x17\x03", b"no record"])
def test_long_streams_are_entered_at_many_places(
    treacherous: bool, tail: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contents that look like records themselves lead the guesses astray; the result is that of the walk all the same."""
    monkeypatch.setattr(record_lanes, "LANE_BYTES", 3000)
    monkeypatch.setattr(record_steps, "MANY_STEPS", 2)
    chance = random.Random(3)
    lengths = [chance.randint(1, 1500) for _ in range(200)]
    if treacherous:
        fake = b"\x17\x03\x03\x00\x0b" + bytes(11)
        records = [bytes([23, 3, 3]) + n.to_bytes(2, "big") + (fake * 100)[:n] for n in lengths]
    else:
        records = [record(n, seed=i) for i, n in enumerate(lengths)]
    talk = Conversation().opens()
    spread(talk, SERVER, HELLO + b"".join(records) + tail, [1000, 333])
    wire = talk.wire()
    assert [length for _, _, length in found(wire, SERVER)] == [5, *lengths]


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
