"""What can begin a TLS record: one header at a time and many at once say the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.wire.record_header import HEADER, MAX_RECORD_BYTES, parse_header, ssl2_hello, valid_headers

near = st.tuples(
    st.sampled_from([0, 19, 20, 21, 22, 23, 24, 25, 128, 255]),
    st.sampled_from([0x0002, 0x02FF, 0x0300, 0x0301, 0x0304, 0x0305, 0x7F1C]),
    st.sampled_from([0, 1, MAX_RECORD_BYTES - 1, MAX_RECORD_BYTES, MAX_RECORD_BYTES + 1, 65_535]),
).map(lambda head: bytes([head[0]]) + head[1].to_bytes(2, "big") + head[2].to_bytes(2, "big"))
headers = st.one_of(near, st.binary(min_size=5, max_size=5))


@given(st.lists(headers, min_size=1, max_size=30))
def test_one_at_a_time_and_many_at_once_agree(heads: list[bytes]) -> None:
    rows = np.frombuffer(b"".join(heads), HEADER)
    assert valid_headers(rows).tolist() == [parse_header(head) is not None for head in heads]


def test_a_header_is_type_version_and_length() -> None:
    assert parse_header(b"\x16\x03\x01\x02\x00") == (22, 0x0301, 512)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"\x80\x2e\x01\x00\x02", (0x0002, 46)),
        (b"\x81\x00\x01\x03\x03", (0x0303, 256)),
        (b"\x00\x2e\x01\x03\x01", None),  # the header of three octets
        (b"\x80\x2e\x04\x03\x01", None),  # no ClientHello
        (b"\x80\x2e\x01\x04\x00", None),  # no version of TLS
        (b"\x80\x2e\x01\x03", None),  # cut
    ],
)
def test_an_ssl2_compatible_client_hello(head: bytes, expected: tuple[int, int] | None) -> None:
    """RFC 5246 appendix E.2."""
    assert ssl2_hello(head) == expected
