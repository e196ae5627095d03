"""One stream, record by record: over holes, and from the middle."""

from __future__ import annotations

import numpy as np
import pytest

from netdiag.wire.streams import record_views, rows_of
from netdiag.wire.tls_records import chain
from tests.support.conversation import CLIENT, SERVER, Conversation
from tests.support.record_streams import HELLO, found, record


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


def test_a_capture_that_begins_inside_a_record() -> None:
    talk = Conversation()
    talk.server(record(2000)[1500:] + b"".join(record(100 + i) for i in range(5)))
    talk.server(record(77))
    wire = talk.wire()
    assert len(chain(wire.buffer, wire.segments)) == 0
    assert chain(wire.buffer, wire.segments, np.array([0])).length.tolist() == [100, 101, 102, 103, 104, 77]


def test_a_capture_that_begins_at_a_record() -> None:
    talk = Conversation()
    talk.server(b"".join(record(100 + i) for i in range(5)))
    wire = talk.wire()
    assert [r[2] for r in found(wire, SERVER)] == [100, 101, 102, 103, 104]


def test_a_chain_that_breaks_off_ends() -> None:
    talk = Conversation().opens()
    talk.client(HELLO + record(30) + b"this is no record header at all")
    assert [r[2] for r in found(talk.wire(), CLIENT)] == [5, 30]
