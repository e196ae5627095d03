"""Sequence numbers past the wrap, stray numbers, and where a stream begins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.wire.sequence import UNKNOWN, running_edge, unwrapped
from tests.support.conversation import CLIENT, SERVER, Conversation
from tests.support.packets import ACK, SYN


@pytest.mark.parametrize("before_wrap", [0, 1, 5, 9, 10, 11, 3000])
def test_the_wrap_changes_nothing(before_wrap: int) -> None:
    talk = Conversation(isns=(2**32 - 1 - before_wrap, 2**32 - 1 - before_wrap)).opens()
    for i in range(5):
        talk.client(b"request %d" % i)
        talk.server(b"response %d" % i)
    wire = talk.wire()
    assert wire.octets(CLIENT) == b"".join(b"request %d" % i for i in range(5))
    assert wire.octets(SERVER) == b"".join(b"response %d" % i for i in range(5))
    assert set(wire.kinds(CLIENT) + wire.kinds(SERVER)) == {"NEW"}
    assert wire.connection().sides.client.missing_bytes == 0


def test_a_syn_that_takes_no_number_costs_no_octet() -> None:
    """Captures made by hand often forget that a SYN counts."""
    talk = Conversation()
    talk.packet(CLIENT, flags=SYN)
    talk.packet(SERVER, flags=SYN | ACK, ack=-1)
    talk.packet(CLIENT, offset=-1, ack=-1)
    talk.packet(CLIENT, b"request", offset=-1, ack=-1)
    talk.packet(SERVER, b"response", offset=-1, ack=6)
    wire = talk.wire()
    assert (wire.octets(CLIENT), wire.octets(SERVER)) == (b"request", b"response")
    assert wire.connection().ack_packet == 3


def test_a_keep_alive_probe_before_any_data_is_no_data() -> None:
    talk = Conversation().opens()
    talk.packet(CLIENT, b"\0", offset=-1)
    talk.client(b"request")
    assert talk.wire().octets(CLIENT) == b"request"


@given(st.lists(st.integers(-(2**29), 2**30 - 1), min_size=1, max_size=60), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_unwrapping_is_the_running_sum(steps: list[int], base: int) -> None:
    truth = np.cumsum(np.array(steps, np.int64))
    numbers = ((base + truth) % 2**32).astype(np.uint32)
    assert unwrapped(numbers, base).tolist() == truth.tolist()


def test_a_stream_of_many_wraps() -> None:
    truth = np.arange(0, 40 * 2**30, 2**29, dtype=np.int64)
    assert unwrapped((truth % 2**32).astype(np.uint32), 0).tolist() == truth.tolist()


def test_one_stray_number_disturbs_nobody() -> None:
    numbers = np.array([100, 200, 3_000_000_000, 300, 400], np.uint32)
    assert unwrapped(numbers, 100).tolist() == [0, 100, UNKNOWN, 200, 300]


def test_a_jump_that_the_next_packet_confirms_is_a_gap_in_the_capture() -> None:
    numbers = np.array([100, 2_000_000_000, 2_000_000_100], np.uint32)
    assert unwrapped(numbers, 100).tolist() == [0, 1_999_999_900, 2_000_000_000]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-50, 1000)), max_size=50))
@settings(max_examples=60, deadline=None)
def test_running_edge_restarts_with_each_direction(rows: list[tuple[int, int]]) -> None:
    rows.sort(key=lambda row: row[0])
    direction = np.array([row[0] for row in rows], np.int64)
    end = np.array([row[1] for row in rows], np.int64)
    starts = np.searchsorted(direction, np.arange(5))
    expected = [max([0] + [e for d, e in rows[:i] if d == rows[i][0]]) for i in range(len(rows))]
    assert running_edge(end, direction, starts).tolist() == expected


def test_a_capture_that_begins_between_reordered_segments() -> None:
    talk = Conversation()
    talk.sent[CLIENT] = 50_000
    early = talk.client(b"first", captured=False)
    talk.client(b"second")
    talk.again(early)
    talk.client(b"third")
    wire = talk.wire()
    assert wire.octets(CLIENT) == b"firstsecondthird"
    assert wire.kinds(CLIENT) == ["NEW", "OUT_OF_ORDER", "NEW"]


def test_a_capture_that_begins_with_a_keep_alive() -> None:
    talk = Conversation()
    talk.sent[CLIENT] = 50_000
    talk.packet(CLIENT, offset=talk.sent[CLIENT] - 1)
    talk.client(b"GET /")
    wire = talk.wire()
    assert wire.chunks(CLIENT)[0].offset == 0
    assert wire.connection().sides.client.missing_bytes == 0


def test_octets_before_the_syn_are_no_part_of_the_stream() -> None:
    talk = Conversation().opens()
    talk.packet(CLIENT, b"of an earlier connection", offset=-5000)
    talk.client(b"GET /")
    assert talk.wire().octets(CLIENT) == b"GET /"


def test_the_syn_ack_that_data_follows_gives_the_base() -> None:
    talk = Conversation().opens()
    isn = talk.isns
    talk.isns = (isn[0], 3_000_000_000)
    talk.packet(SERVER, flags=18)
    talk.isns = isn
    talk.server(b"answer")
    assert talk.wire().octets(SERVER) == b"answer"


def test_frame_padding_that_was_counted_as_payload_is_taken_off() -> None:
    talk = Conversation().opens()
    talk.packet(CLIENT, bytes(6))
    talk.client(b"GET / HTTP/1.1\r\n")
    talk.packet(SERVER, bytes(6))
    talk.server(b"HTTP/1.1 200 OK\r\n")
    wire = talk.wire()
    assert (wire.octets(CLIENT), wire.octets(SERVER)) == (b"GET / HTTP/1.1\r\n", b"HTTP/1.1 200 OK\r\n")
    assert wire.connection().sides.client.retransmitted_segments == 0


def test_zero_octets_that_the_sender_counted_stay() -> None:
    talk = Conversation().opens()
    talk.say(CLIENT, bytes(6), flags=16)
    talk.client(b"more than six octets")
    assert talk.wire().octets(CLIENT) == bytes(6) + b"more than six octets"
