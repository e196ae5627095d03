"""The fast path decodes what the layers decode, to the same columns, and leaves the rest to them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.wire import decode as module
from netdiag.wire.decode import decode
from netdiag.wire.fast import SHAPES
from tests.support.packets import ethernet, ipv4, ipv6, tcp, timed, window_of

ports, numbers, flags = st.integers(0, 65_535), st.integers(0, 2**32 - 1), st.integers(0, 0x1FF)
segments = st.builds(
    tcp,
    st.binary(max_size=20),
    source_port=ports,
    destination_port=ports,
    seq=numbers,
    ack=numbers,
    flags=flags,
    window=ports,
    options=st.binary(max_size=12),
)
packets = st.one_of(
    st.builds(
        ipv4, segments, identification=ports, ttl=st.integers(0, 255), options=st.sampled_from([b"", b"\1\1\1\1"])
    ),
    st.builds(ipv6, segments, hop_limit=st.integers(0, 255), payload_length=st.sampled_from([None, 0])),
    st.builds(ipv4, segments, fragment=st.sampled_from([0, 0x4000, 0x2000])),
    st.builds(ipv4, st.binary(max_size=30)),
)
LINKS = {0: b"\x02\0\0\0", 12: b"", 101: b"", 113: bytes(14) + b"\x08\0", 228: b"", 276: b"\x08\0" + bytes(18)}
"""Headers before IPv4, by LINKTYPE_."""


@given(st.lists(packets, min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_as_layer_by_layer(given_packets: list[bytes]) -> None:
    window = window_of(timed([ethernet(packet) for packet in given_packets]))
    fast = decode(window)
    shapes = dict(SHAPES)
    module.SHAPES.clear()
    try:
        slow = decode(window)
    finally:
        module.SHAPES.update(shapes)
    for name in type(fast.packets).__dataclass_fields__:
        assert np.array_equal(getattr(fast.packets, name), getattr(slow.packets, name)), name
    assert fast.not_decoded == slow.not_decoded


@pytest.mark.parametrize("link_type", LINKS)
def test_every_shape_knows_where_ip_begins(link_type: int) -> None:
    frame = LINKS[link_type] + ipv4(tcp(b"hello", seq=77))
    found = decode(window_of(timed([frame]), link_type=link_type)).packets
    assert (found.seq.tolist(), found.payload_bytes.tolist()) == ([77], [5])
