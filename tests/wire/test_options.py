"""TCP options of many packets at once, against one list read at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from netdiag.wire.options import sack_blocks, shows_tcp_header, syn_options, time_stamps
from netdiag.wire.tables import NONE
from tests.support.conversation import CLIENT, Conversation, wire_of
from tests.support.packets import EPOCH_NS, SYN, ethernet, ipv4, ipv6, tcp

MSS, WINDOW_SCALE, SACK_PERMITTED, SACK, TIMESTAMPS = 2, 3, 4, 5, 8

octets = st.integers(0, 255)
words = st.integers(0, 2**32 - 1)
options = st.one_of(
    st.just(b"\0"),
    st.just(b"\1"),
    st.integers(0, 65_535).map(lambda mss: b"\x02\x04" + mss.to_bytes(2, "big")),
    octets.map(lambda shift: bytes((WINDOW_SCALE, 3, shift))),
    st.just(b"\x04\x02"),
    st.lists(words, min_size=1, max_size=4).map(
        lambda edges: bytes((SACK, 2 + 4 * len(edges))) + b"".join(edge.to_bytes(4, "big") for edge in edges)
    ),
    st.tuples(words, words).map(
        lambda pair: bytes((TIMESTAMPS, 10)) + b"".join(value.to_bytes(4, "big") for value in pair)
    ),
    st.binary(min_size=1, max_size=6),
)
lists = st.lists(options, max_size=6).map(b"".join).map(lambda joined: joined[:40])


def walked(data: bytes) -> list[tuple[int, bytes]]:
    """Kind and value of each option, up to where the list makes no sense (RFC 9293 section 3.1)."""
    found: list[tuple[int, bytes]] = []
    at = 0
    while at < len(data) and data[at] != 0:
        if data[at] == 1:
            at += 1
            continue
        if at + 1 >= len(data) or data[at + 1] < 2 or at + data[at + 1] > len(data):
            break
        found.append((data[at], data[at + 2 : at + data[at + 1]]))
        at += data[at + 1]
    return found


def last(found: list[tuple[int, bytes]], kind: int, *sizes: int) -> bytes | None:
    """The value of the last option of a kind that has one of these sizes."""
    return next((value for number, value in reversed(found) if number == kind and len(value) in sizes), None)


def word(value: bytes | None, at: int) -> int:
    return NONE if value is None or len(value) < at + 4 else int.from_bytes(value[at : at + 4], "big")


@given(st.lists(lists, min_size=1, max_size=8))
def test_all_lists_in_lock_step_are_each_read_as_if_alone(given_lists: list[bytes]) -> None:
    frames = [
        (EPOCH_NS + i, ethernet(ipv4(tcp(b"x" * i, flags=SYN, source_port=1000 + i, options=one))))
        for i, one in enumerate(given_lists)
    ]
    wire = wire_of(frames)
    packets, rows = wire.packets, np.arange(len(frames))
    padded = [one + b"\1" * (-len(one) % 4) for one in given_lists]
    found = [walked(one) for one in padded]
    syn = syn_options(packets, rows, wire.buffer)
    mss = [last(one, MSS, 2) for one in found]
    assert syn.mss_bytes.tolist() == [NONE if value is None else int.from_bytes(value, "big") for value in mss]
    scale = [last(one, WINDOW_SCALE, 1) for one in found]
    assert syn.window_scale.tolist() == [NONE if value is None else min(14, value[0]) for value in scale]
    assert syn.sack.tolist() == [int(last(one, SACK_PERMITTED, 0) is not None) for one in found]
    stamps = [last(one, TIMESTAMPS, 8) for one in found]
    assert time_stamps(packets, rows, wire.buffer).tolist() == [word(value, 0) for value in stamps]


@given(st.lists(words, min_size=2, max_size=8).filter(lambda edges: len(edges) % 2 == 0))
def test_the_first_two_sack_blocks(edges: list[int]) -> None:
    sack = bytes((SACK, 2 + 4 * len(edges))) + b"".join(edge.to_bytes(4, "big") for edge in edges)
    wire = wire_of([(EPOCH_NS, ethernet(ipv4(tcp(options=b"\1\1" + sack))))])
    blocks = sack_blocks(wire.packets, np.arange(1), wire.buffer)
    columns = (blocks.first_left, blocks.first_right, blocks.second_left, blocks.second_right)
    assert [int(column[0]) for column in columns] == [*edges, NONE, NONE][:4]


def test_both_ip_versions_show_their_tcp_header() -> None:
    wire = wire_of([(EPOCH_NS, ethernet(ipv4(tcp(b"x")))), (EPOCH_NS + 1, ethernet(ipv6(tcp(b"x"))))])
    assert shows_tcp_header(wire.packets, np.arange(2)).tolist() == [True, True]


def test_a_malformed_option_list_ends_where_it_makes_no_sense() -> None:
    talk = Conversation()
    talk.packet(CLIENT, flags=SYN, options=b"\x02\x04\x05\xb4\x03\x00\x02\x04")
    record = talk.wire().connection()
    assert (record.sides.client.mss_bytes, record.sides.client.window_scale) == (1460, None)
