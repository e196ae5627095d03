"""QUIC among datagrams: told by version, whole flows, the same connections that tshark finds."""

from __future__ import annotations

from typing import Any

import pytest

from netdiag.analysis.gather import gather
from netdiag.analysis.quic_flows import quic_connections
from netdiag.capture.source import open_capture
from tests.support.packets import timed, udp_frame, window_of
from tests.support.public_captures import folder
from tests.support.tools import needs_public_captures, public_truth

LONG_HEADER_V1 = b"\xc0\0\0\0\1" + b"\x08" + bytes(8) + b"\0" + bytes(40)


def test_other_datagrams_are_none() -> None:
    frames = timed([udp_frame(b"\x80" + bytes(60), destination=("10.0.0.2", 5000)), udp_frame(b"\x12\x34" + bytes(40))])
    gathered = gather([window_of(frames)])
    assert quic_connections(gathered.datagrams, gathered.buffer) == []


def test_all_datagrams_of_a_flow_count_whatever_they_begin_with() -> None:
    frames = timed(
        [
            udp_frame(d, destination=("10.0.0.2", 443))
            for d in (LONG_HEADER_V1, b"\x40" + bytes(30), b"\x41" + bytes(30))
        ]
    )
    gathered = gather([window_of(frames)])
    (one,) = quic_connections(gathered.datagrams, gathered.buffer)
    assert sum(one.packets) == 3
    assert one.server.port == 443


def test_no_datagrams() -> None:
    gathered = gather([])
    assert quic_connections(gathered.datagrams, gathered.buffer) == []


HEADERS_ONLY = {("10.3.5.100", 56005), ("10.9.4.1", 52001)}
"""Headers without a hello: QUIC to tshark too, but not in its table of handshakes."""
CASES = [t for t in public_truth() if t["quic"]]


@needs_public_captures
@pytest.mark.parametrize("truth", CASES, ids=[t["path"] for t in CASES])
def test_the_same_connections_as_tshark(truth: dict[str, Any]) -> None:
    with open_capture(folder() / truth["path"]) as capture:
        gathered = gather(capture.windows())
        found = quic_connections(gathered.datagrams, gathered.buffer)
    clients = {(c.client.address, c.client.port) for c in found}
    assert clients - HEADERS_ONLY == {tuple(row["client"]) for row in truth["quic"]}
