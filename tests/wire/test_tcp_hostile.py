"""Traffic that no honest stack sends: nothing raises, nothing hangs, and what is said stays consistent."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from netdiag.wire.streams import record_views, rows_of
from netdiag.wire.tables import NONE, Int64, Packets
from netdiag.wire.tls_records import chain
from tests.support.conversation import CLIENT, SERVER, Wire, wire_of
from tests.support.packets import EPOCH_NS, Timed, ethernet, ipv4, tcp

ENDS = (("10.0.0.1", 1), ("10.0.0.1", 2), ("10.0.0.2", 1))
NUMBERS = st.one_of(
    st.sampled_from([0, 1, 2, 5, 2**31 - 1, 2**31, 2**32 - 1]), st.integers(0, 40), st.integers(0, 2**32 - 1)
)


@st.composite
def frames(draw: st.DrawFn) -> list[Timed]:
    """Any flags, numbers, lengths, options and times between a few endpoints, the same at both ends included."""
    out, at = [], EPOCH_NS
    for _ in range(draw(st.integers(1, 25))):
        here, there = draw(st.sampled_from(ENDS)), draw(st.sampled_from(ENDS))
        segment = tcp(
            draw(st.one_of(st.just(b""), st.binary(max_size=30), st.just(b"\x16\x03\x01\x00\x02\x01\x00"))),
            source_port=here[1],
            destination_port=there[1],
            seq=draw(NUMBERS),
            ack=draw(NUMBERS),
            flags=draw(st.integers(0, 255)),
            window=draw(st.sampled_from([0, 1, 65535])),
            options=draw(st.one_of(st.just(b""), st.binary(max_size=40))),
        )
        identification = draw(st.integers(0, 3))
        at += draw(st.integers(-(10**9), 10**9))
        out.append((at, ethernet(ipv4(segment, source=here[0], destination=there[0], identification=identification))))
    return out


def octets_before_the_syn() -> list[Timed]:
    """A SYN, then two octets with the number before it: they are sent again, but were never sent first."""

    def frame(flags: int, seq: int, payload: bytes) -> bytes:
        segment = tcp(payload, source_port=1, destination_port=1, seq=seq, ack=0, flags=flags, window=0)
        return ethernet(ipv4(segment, source="10.0.0.1", destination="10.0.0.1", identification=0))

    return [(EPOCH_NS, frame(2, 1, b"")), (EPOCH_NS, frame(0, 0, b"\0\0"))]


@example(octets_before_the_syn())
@given(frames())
@settings(max_examples=150, deadline=None)
def test_any_packets_make_consistent_tables(sent: list[Timed]) -> None:
    wire = wire_of(sent)
    flows, segments = wire.flows, wire.segments
    assert len(flows.packets) == len(wire.packets)
    end = segments.stream_offset + segments.length
    assert ((segments.new_offset >= segments.stream_offset) & (segments.new_offset <= end)).all()
    ready = segments.deliverable_at
    assert ((ready == NONE) | (ready >= segments.seen_at)).all()
    table = chain(wire.buffer, segments, np.arange(flows.count))
    for i in range(flows.count):
        record = wire.connection(i)
        assert record.sides.client.packets + record.sides.server.packets > 0
        for side in (CLIENT, SERVER):
            at = 0
            for chunk in wire.chunks(side, i):
                assert chunk.offset == at + chunk.missing_before
                at = chunk.offset + len(chunk.data)
            for view in record_views(wire.buffer, segments, table, rows_of(table, i, side)):
                view.fragment()


def table(
    seq: Int64,
    *,
    length: Int64 | int = 100,
    flags: Int64 | int = 16,
    ack: Int64 | int = 1,
    direction: Int64 | int = 0,
    window: int = 512,
) -> Packets:
    """A capture of one pair of endpoints, straight as columns."""
    count = len(seq)

    def column(value: Int64 | int, kind: type[np.generic]) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
        return np.broadcast_to(np.asarray(value), count).astype(kind)

    return Packets(
        number=np.arange(1, count + 1),
        captured_at=EPOCH_NS + np.arange(count) * 1_000,
        low=column(1 << 16 | 443, np.uint64),
        high=column(2 << 16 | 40000, np.uint64),
        direction=column(direction, np.uint8),
        seq=(np.asarray(seq) % 2**32).astype(np.uint32),
        ack=column(ack, np.uint32),
        flags=column(flags, np.uint16),
        window=column(window, np.uint16),
        payload_offset=column(54, np.int64),
        payload_bytes=column(length, np.int32),
        captured_payload_bytes=column(length, np.int32),
        network_offset=column(14, np.int64),
        header_bytes=column(20, np.uint8),
        ip_id=column(0, np.int32),
        hop_limit=column(64, np.uint8),
        interface=column(0, np.int32),
    )


COUNT = 60_000
EVEN = np.arange(COUNT // 2) * 200
HOSTILE: dict[str, Callable[[], Packets]] = {
    "every other segment missing, then filled from the back": lambda: table(np.concatenate((EVEN + 100, EVEN[::-1]))),
    "every segment before the one before it": lambda: table(np.arange(COUNT)[::-1] * 100),
    "the same packet again and again": lambda: table(np.zeros(COUNT, np.int64)),
    "one octet at a time, each twice": lambda: table(np.repeat(np.arange(COUNT // 2), 2), length=1),
    "SYNs of both ends in turn": lambda: table(
        np.full(COUNT, 7), length=0, flags=2, direction=np.arange(COUNT) % 2, ack=0
    ),
    "SYNs with ever new numbers": lambda: table(np.arange(COUNT) * 7919, length=0, flags=2, ack=0),
    "SYN and RST in turn": lambda: table(
        np.full(COUNT, 7), length=0, flags=np.where(np.arange(COUNT) % 2, 20, 2), direction=np.arange(COUNT) % 2
    ),
    "numbers at random": lambda: table(np.random.default_rng(1).integers(0, 2**32, COUNT)),
    "a window that is full and never opens": lambda: table(
        np.arange(COUNT) * 50,
        length=np.where(np.arange(COUNT) % 2, 100, 0),
        direction=(np.arange(COUNT) + 1) % 2,
        window=0,
    ),
    "FINs for ever": lambda: table(np.zeros(COUNT, np.int64), length=0, flags=17),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_time_grows_with_the_packets(kind: str) -> None:
    """Some seconds would mean that something looks at every packet for every packet."""
    wire = Wire(HOSTILE[kind](), bytes(256))
    started = time.process_time()
    segments = wire.segments
    assert len(wire.table) == wire.flows.count
    chain(wire.buffer, segments, np.arange(wire.flows.count))
    for side in (CLIENT, SERVER):
        wire.chunks(side)
    assert time.process_time() - started < 8
