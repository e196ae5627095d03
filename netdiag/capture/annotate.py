"""Copy a capture with comments on its packets, so that Wireshark shows what netdiag says where it says it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import BinaryIO

from netdiag.capture.source import CaptureFile
from netdiag.capture.writer import PcapngWriter
from netdiag.wire.tables import NONE, Interface, Window

_NANOSECONDS = 1_000_000_000


def copy(
    capture: CaptureFile,
    target: BinaryIO,
    *,
    comments: Mapping[int, str],
    wanted: Container[int] | None = None,
    keylog: bytes = b"",
    application: str = "netdiag",
) -> int:
    """Write the packets of ``capture`` (those whose frame numbers are in ``wanted``, or all) as pcapng; how many they were.

    ``comments`` are by frame number of the original; the new file counts from 1 again. The keys go in only when given: the file is then as
    secret as the traffic. Times are written in nanoseconds whatever resolution they had; a packet without a time has its predecessor's.
    """
    for _ in capture.windows():
        pass  # interfaces may appear anywhere in the file, but a writer needs them first
    count, last_at = 0, 0
    with PcapngWriter(target, interfaces=_interfaces(capture), application=application) as writer:
        writer.secrets(keylog)
        for number, at, data, original, interface in _packets(capture):
            last_at = at if at != NONE else last_at
            if wanted is None or number in wanted:
                writer.packet(data, last_at, interface=interface, original_bytes=original, comment=comments.get(number))
                count += 1
    return count


def _interfaces(capture: CaptureFile) -> list[Interface]:
    return [
        Interface(
            link_type=one.link_type,
            snap_bytes=one.snap_bytes,
            ticks_per_second=_NANOSECONDS,
            name=one.name,
            fcs_bytes=one.fcs_bytes,
        )
        for one in capture.interfaces
    ]


def _packets(capture: CaptureFile) -> Iterator[tuple[int, int, bytes, int, int]]:
    """(frame number, time, octets, original length, interface) of every packet."""
    for window in capture.windows():
        yield from _of_window(window)


def _of_window(window: Window) -> Iterator[tuple[int, int, bytes, int, int]]:
    rows, buffer = window.packets, memoryview(window.buffer)
    columns = (
        rows.number,
        rows.captured_at,
        rows.data_offset,
        rows.captured_bytes,
        rows.original_bytes,
        rows.interface,
    )
    for number, at, offset, captured, original, interface in zip(*(c.tolist() for c in columns), strict=True):
        yield number, at, bytes(buffer[offset : offset + captured]), original, interface
