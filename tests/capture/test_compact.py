"""Packets of a partition copied together: what they hold is the same, wherever it lay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from netdiag.capture import compact
from netdiag.capture.compact import compacted
from netdiag.capture.source import open_capture
from netdiag.wire.decode import decode
from netdiag.wire.tables import Buffer, Packets

CAPTURES = sorted((Path(__file__).parents[2] / "captures").glob("*.pcapng"))


def contents(packets: Packets, buffer: Buffer) -> list[tuple[bytes, bytes]]:
    """IP header to the end of the TCP header, and the payload, of each packet."""
    octets = bytes(buffer)
    return [
        (octets[network:payload], octets[payload : payload + size])
        for network, payload, size in zip(
            packets.network_offset.tolist(),
            packets.payload_offset.tolist(),
            packets.captured_payload_bytes.tolist(),
            strict=True,
        )
    ]


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_what_packets_hold_is_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "BLOCK_BITS", 10)
    monkeypatch.setattr(compact, "BLOCKS", 2)
    given_back = []
    with open_capture(str(path)) as capture:
        for window in capture.windows():
            packets = decode(window).packets
            every_second = packets.take(np.arange(0, len(packets), 2))
            moved = compacted(every_second, window.buffer, lambda: given_back.append(1))
            assert moved is not None
            assert contents(*moved) == contents(every_second, window.buffer)
            assert moved[0].number.tolist() == every_second.number.tolist()
            assert len(moved[1]) == sum(len(a) + len(b) for a, b in contents(*moved))
    assert len(given_back) >= path.stat().st_size >> 13


def test_what_is_too_large_stays_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_capture(str(CAPTURES[0])) as capture:
        window = next(iter(capture.windows()))
        packets = decode(window).packets
        monkeypatch.setattr(compact, "MOST_BYTES", sum(len(a) + len(b) for a, b in contents(packets, window.buffer)))
        assert compacted(packets, window.buffer, lambda: None) is not None
        monkeypatch.setattr(compact, "MOST_BYTES", compact.MOST_BYTES - 1)
        assert compacted(packets, window.buffer, lambda: None) is None


def test_nothing_is_nothing() -> None:
    with open_capture(str(CAPTURES[0])) as capture:
        window = next(iter(capture.windows()))
        none = decode(window).packets.take(slice(0, 0))
        moved = compacted(none, window.buffer, lambda: None)
    assert moved is not None
    assert (len(moved[0]), bytes(moved[1])) == (0, b"")
