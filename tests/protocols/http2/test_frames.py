"""What a frame header may say, for finding the way back into a stream."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.http2.frames import plausible_chain, plausible_header, surely_frames
from tests.support import h2_bytes as h2

frames = st.one_of(
    st.builds(
        h2.frame,
        st.just(h2.DATA),
        st.sampled_from([0, h2.END_STREAM, h2.PADDED]),
        st.integers(1, 99),
        st.binary(max_size=40),
    ),
    st.builds(
        h2.frame, st.just(h2.HEADERS), st.sampled_from([0x4, 0x5, 0x25]), st.integers(1, 99), st.binary(max_size=40)
    ),
    st.builds(h2.window_update, st.integers(0, 99), st.integers(1, 2**31 - 1)),
    st.builds(h2.rst, st.integers(1, 99), st.integers(0, 13)),
    st.builds(h2.goaway, st.integers(0, 99)),
    st.just(h2.SETTINGS_ACK),
    st.just(h2.settings(s3=100, s4=65_535)),
)


@given(st.lists(frames, min_size=1, max_size=8), st.integers(0, 8))
def test_real_frames_are_plausible_wherever_they_are_cut(chain: list[bytes], left_out: int) -> None:
    octets = b"".join(chain)
    assert plausible_chain(octets[: max(9, len(octets) - left_out)])


@pytest.mark.parametrize(
    "wrong",
    [
        h2.frame(h2.DATA, 0, 0, b"x"),  # a stream of its own
        h2.frame(h2.SETTINGS, 0, 1),  # the connection's
        h2.frame(h2.SETTINGS, 0, 0, b"1234567"),  # a multiple of six
        h2.frame(h2.SETTINGS, h2.ACK, 0, bytes(6)),  # empty
        h2.frame(h2.WINDOW_UPDATE, 0, 1, b"123"),
        h2.frame(h2.PING, 0, 0, b"1234567"),
        h2.frame(h2.RST_STREAM, 0, 1, b"12345"),
        h2.frame(h2.DATA, 0x40, 1, b"x"),  # a flag that it does not have
        h2.frame(0x2A, 0, 1, b"x"),
        h2.frame(h2.DATA, 0, 1 << 31 | 1, b"x"),  # the reserved bit
        h2.frame(h2.DATA, 0, 2_000_000, b"x"),
        h2.frame(h2.DATA, 0, 1, bytes((1 << 14) + 1)),
    ],
)
def test_a_header_that_breaks_a_rule_is_none(wrong: bytes) -> None:
    assert not plausible_chain(wrong)
    assert not plausible_chain(h2.SETTINGS_ACK + wrong)


def test_streams_far_beyond_the_known_ones_are_not_believed() -> None:
    assert plausible_header(10, h2.DATA, 0, 2_101, 101)
    assert not plausible_header(10, h2.DATA, 0, 2_103, 101)


def test_one_data_header_alone_proves_nothing() -> None:
    data = h2.frame(h2.DATA, 0, 1, bytes(20))
    assert not surely_frames(data)
    assert not surely_frames(data + data[:8])
    assert surely_frames(data + data[:9])
    assert surely_frames(h2.settings(s3=100))
    assert not surely_frames(b"HTTP/1.1 200 OK\r\n\r\n")


def test_less_than_a_header_is_no_chain() -> None:
    assert not plausible_chain(h2.SETTINGS_ACK[:8])
