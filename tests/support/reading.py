"""Capture files read whole, for tests."""

from __future__ import annotations

import io

import numpy as np

from netdiag.capture.source import CaptureFile, open_capture
from netdiag.wire.tables import RawPackets
from tests.support.packets import (
    Timed,
    option,
    tcp_conversation,
)

FRAMES = tcp_conversation([(0, b"GET / HTTP/1.1\r\n\r\n"), (1, b"x" * 3000)])
END = option(0, b"")


def no_packets() -> RawPackets:
    """A table without rows."""
    empty = np.empty(0, np.int64)
    return RawPackets(
        number=empty,
        captured_at=empty,
        data_offset=empty,
        captured_bytes=empty,
        original_bytes=empty,
        interface=empty.astype(np.int32),
    )


def read(raw: bytes, window_bytes: int = 64 << 20) -> tuple[CaptureFile, RawPackets]:
    """All packets of a file in memory."""
    capture = open_capture(io.BytesIO(raw))
    tables = [window.packets for window in capture.windows(window_bytes)]
    return capture, RawPackets.concat([no_packets(), *tables])


def contents(raw: bytes, packets: RawPackets) -> list[Timed]:
    """(time, octets) of each packet."""
    return [
        (at, raw[start : start + size])
        for at, start, size in zip(
            packets.captured_at.tolist(), packets.data_offset.tolist(), packets.captured_bytes.tolist(), strict=True
        )
    ]
