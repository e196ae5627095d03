"""A load balancer's PROXY header before a real conversation: everything behind it is read as without it, and the client is named."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import netdiag
from netdiag.analysis.gather import gather
from netdiag.capture.source import open_capture
from netdiag.records.analysis import Analysis
from netdiag.wire.connections import track
from netdiag.wire.segments import segment
from netdiag.wire.streams import chunks, rows_of
from tests.support.conversation import CLIENT, SERVER, Conversation
from tests.support.packets import pcap

CAPTURES = Path(__file__).parents[2] / "captures"
V1 = b"PROXY TCP4 198.51.100.7 203.0.113.5 51000 443\r\n"
V2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes([198, 51, 100, 7, 203, 0, 113, 5]) + b"\xc7\x38\x01\xbb"


def behind_a_balancer(name: str, header: bytes, keylog: Path | None) -> Analysis:
    """The octets of a capture's first connection said again behind ``header``."""
    with open_capture(CAPTURES / f"{name}.pcapng") as capture:
        gathered = gather(capture.windows())
        if keylog is not None:
            keylog.write_bytes(b"\n".join(capture.secrets))
        segments = segment(track(gathered.packets, gathered.buffer))
        said = [
            (chunk.first_seen_at, side, bytes(chunk.data))
            for side in (CLIENT, SERVER)
            for chunk in chunks(gathered.buffer, segments, rows_of(segments, 0, side))
        ]
    talk = Conversation().opens(rtt_ms=5)
    for side, octets in [(CLIENT, header), *((side, octets) for _, side, octets in sorted(said))]:
        for start in range(0, len(octets), 1_400):
            talk.say(side, octets[start : start + 1_400])
    return netdiag.analyze(io.BytesIO(pcap(talk.frames)), keylog=keylog)


@pytest.mark.parametrize("header", [V1, V2, b""], ids=["v1", "v2", "none"])
@pytest.mark.parametrize("name", ["h1", "h2", "tls12-h1", "clear-text-h2"])
def test_with_keys(name: str, header: bytes, tmp_path: Path) -> None:
    found = behind_a_balancer(name, header, tmp_path / "keys.txt")
    (connection,), (exchange,) = found.connections, found.exchanges
    assert (exchange.method, exchange.status) == ("GET", 200)
    assert [p.name for p in exchange.phases][-3:] == ["send", "wait", "transfer"]
    assert (None if connection.origin is None else str(connection.origin)) == ("198.51.100.7:51000" if header else None)


@pytest.mark.parametrize("header", [V1, V2], ids=["v1", "v2"])
def test_without_keys(header: bytes) -> None:
    found = behind_a_balancer("h1", header, None)
    (connection,), (exchange,) = found.connections, found.exchanges
    assert str(connection.origin) == "198.51.100.7:51000"
    assert connection.tls is not None
    assert [str(p.name) for p in exchange.phases] == ["tcp", "tls", "send", "wait", "transfer"]
