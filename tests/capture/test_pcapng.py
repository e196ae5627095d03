"""The pcapng format: sections, interfaces, all kinds of packet blocks, options, whole and damaged."""

from __future__ import annotations

import io
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.capture.facts import Comment
from netdiag.capture.pcapng_times import interface_nanoseconds
from netdiag.capture.source import open_capture
from netdiag.wire.decode import decode
from netdiag.wire.tables import NONE, Interface
from tests.support.packets import (
    EPOCH_NS,
    block,
    interface_block,
    option,
    packet_block,
    pcapng,
    secrets_block,
    section_header,
)
from tests.support.reading import END, FRAMES, contents, read
from tests.support.tools import needs_tshark


@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize("window_bytes", [1, 300, 10**7])
def test_both_byte_orders(big_endian: bool, window_bytes: int) -> None:
    raw = pcapng(FRAMES, big_endian=big_endian, keylog=b"CLIENT_RANDOM 00 11\n")
    capture, packets = read(raw, window_bytes)
    assert contents(raw, packets) == FRAMES
    assert packets.number.tolist() == list(range(1, len(FRAMES) + 1))
    assert (capture.format, capture.secrets, capture.timestamp_resolution_ns) == (
        "pcapng",
        [b"CLIENT_RANDOM 00 11\n"],
        1,
    )
    assert (capture.anomalies, capture.cut_at_byte, capture.dropped_packets) == ([], None, None)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(("version", "known"), [((1, 0), True), ((1, 2), True), ((1, 1), False), ((2, 0), False)])
def test_a_section_of_another_version_is_said_to_be_one(order: str, version: tuple[int, int], known: bool) -> None:
    other = bytearray(section_header(order=order))
    struct.pack_into(order + "HH", other, 12, *version)
    nanoseconds = option(9, b"\x09", order=order) + option(0, b"", order=order)
    interface = interface_block(1, order=order, options=nanoseconds)
    frames = b"".join(packet_block(at, frame, order=order) for at, frame in FRAMES)
    raw = section_header(order=order) + interface + frames + bytes(other) + interface + frames
    capture, packets = read(raw)
    assert contents(raw, packets) == FRAMES * 2
    said = [(a.reason, a.offset) for a in capture.anomalies]
    at = len(section_header()) + len(interface) + len(frames)
    assert said == ([] if known else [(f"a section of version {version[0]}.{version[1]} is read as one of 1.0", at)])
    assert capture.cut_at_byte is None


def test_sections_of_both_orders_with_interfaces_of_their_own() -> None:
    parts, expected = [], []
    for index, order in enumerate("<><<>"):
        options = option(9, b"\x09", order=order) + option(0, b"", order=order)
        parts += [section_header(order=order), interface_block(1, order=order, options=options)]
        parts += [interface_block(101, order=order)] * index
        parts += [packet_block(at, frame, order=order, interface=0) for at, frame in FRAMES]
        expected += FRAMES
    raw = b"".join(parts)
    capture, packets = read(raw)
    assert contents(raw, packets) == expected
    assert len(capture.interfaces) == 5 + 0 + 1 + 2 + 3 + 4
    assert [capture.interfaces[i].link_type for i in np.unique(packets.interface)] == [1] * 5
    assert capture.anomalies == []


@pytest.mark.parametrize(
    ("resolution", "ticks", "expected_ns"),
    [
        (b"\x00", 7, 7 * 10**9),
        (b"\x03", 1_500, 1_500 * 10**6),
        (b"\x06", 1_700_000_000_123_456, 1_700_000_000_123_456_000),
        (b"\x09", EPOCH_NS + 7, EPOCH_NS + 7),
        (b"\x0c", 1_700_000_000_123_456, 1_700_000_000_123),
        (b"\x80", 9, 9 * 10**9),
        (b"\x8a", 1024 + 512, 1_500_000_000),
        (b"\xa0", (5 << 32) + (1 << 31), 5_500_000_000),
        (b"\xbc", (5 << 60) + (1 << 59), 5_500_000_000),
        (b"\xff", 2**64 - 1, 0),
        (b"\x13", 2**64 - 1, 1_844_674_407),
        (b"\x7f", 2**64 - 1, 0),
    ],
)
def test_any_time_stamp_resolution(resolution: bytes, ticks: int, expected_ns: int) -> None:
    raw = section_header() + interface_block(options=option(9, resolution) + END) + packet_block(ticks, b"x")
    assert read(raw)[1].captured_at.tolist() == [expected_ns]


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(st.integers(0, 20).map(lambda e: 10**e), st.integers(0, 64).map(lambda e: 1 << e)),
    st.lists(st.integers(0, 2**64 - 1), min_size=1),
    st.integers(-(10**9), 10**10),
)
def test_times_are_exact(rate: int, ticks: list[int], offset_s: int) -> None:
    interface = Interface(link_type=1, snap_bytes=0, ticks_per_second=rate, offset_s=offset_s)
    got = interface_nanoseconds(np.array(ticks, np.uint64), interface).tolist()
    exact = [t * 10**9 // rate + offset_s * 10**9 for t in ticks]
    for value, expected in zip(got, exact, strict=True):
        assert value == expected or (value == NONE and not 0 <= expected < 2**63 - 2 * 10**18)


def test_time_offset() -> None:
    options = option(9, b"\x09") + option(14, struct.pack("<q", 1_600_000_000)) + END
    raw = section_header() + interface_block(options=options) + packet_block(5, b"x")
    assert read(raw)[1].captured_at.tolist() == [1_600_000_000 * 10**9 + 5]


def test_times_that_no_calendar_has_are_unknown() -> None:
    raw = section_header() + interface_block() + packet_block(2**64 - 1, b"x")
    capture, packets = read(raw)
    assert packets.captured_at.tolist() == [NONE]
    assert "2262" in capture.anomalies[0].reason


def test_interface_options() -> None:
    options = option(2, b"eth0") + option(3, b"the first") + option(13, b"\x04") + option(1, b"note") + END
    capture, _ = read(section_header() + interface_block(1, snap_bytes=96, options=options))
    assert capture.interfaces == (
        Interface(link_type=1, snap_bytes=96, ticks_per_second=10**6, name="eth0", fcs_bytes=4),
    )
    assert capture.comments == [Comment("note")]


@pytest.mark.parametrize("order", "<>")
def test_simple_packets_are_cut_by_the_snap_length_and_have_no_time(order: str) -> None:
    data = bytes(range(10))
    simple = block(3, struct.pack(order + "I", 25) + data, order=order)
    raw = section_header(order=order) + interface_block(1, snap_bytes=10, order=order) + simple
    packets = read(raw)[1]
    assert contents(raw, packets) == [(NONE, data)]
    assert packets.original_bytes.tolist() == [25]


@pytest.mark.parametrize("order", "<>")
def test_obsolete_packets_have_sixteen_bits_of_drops(order: str) -> None:
    def old(drops: int, data: bytes) -> bytes:
        head = struct.pack(order + "HHIIII", 1, drops, 0, 5, len(data), len(data))
        return block(2, head + data, order=order)

    raw = section_header(order=order) + interface_block(0, order=order) + interface_block(1, order=order)
    raw += old(0xFFFF, b"abc") + old(3, b"de") + old(4, b"f")
    capture, packets = read(raw)
    assert contents(raw, packets) == [(5000, b"abc"), (5000, b"de"), (5000, b"f")]
    assert packets.interface.tolist() == [1, 1, 1]
    assert capture.dropped_packets == 7


def test_all_kinds_mixed_keep_file_order_and_numbers() -> None:
    raw = section_header() + interface_block()
    raw += packet_block(1, b"a")
    raw += block(3, struct.pack("<I", 1) + b"b")
    raw += block(4, struct.pack("<HH", 0, 0))  # names
    raw += block(0xBAD, struct.pack("<I", 32473) + b"custom")
    raw += block(9, b"journal entry")
    raw += block(0x12345, b"nobody knows")
    raw += packet_block(2, b"c")
    capture, packets = read(raw)
    assert packets.number.tolist() == [1, 2, 3, 4, 5]
    assert [data for _, data in contents(raw, packets)] == [b"a", b"b", b"", b"", b"c"]
    assert packets.interface.tolist() == [0, 0, NONE, NONE, 0]
    assert capture.anomalies == []
    (window,) = open_capture(io.BytesIO(raw)).windows()
    assert decode(window).not_decoded["no packet (custom block, journal or event)"] == 2


@needs_tshark
def test_frame_numbers_are_those_of_wireshark(tmp_path: Path) -> None:
    raw = section_header() + interface_block()
    raw += (
        packet_block(1, b"a" * 60)
        + block(0xBAD, struct.pack("<I", 32473) + b"custom")
        + block(9, b"__REALTIME_TIMESTAMP=1\nMESSAGE=hello\n")
    )
    raw += block(4, struct.pack("<HH", 0, 0)) + block(0x12345, b"nobody") + block(5, struct.pack("<III", 0, 0, 0))
    raw += packet_block(2, b"c" * 60) + block(3, struct.pack("<I", 60) + b"b" * 60)
    path = tmp_path / "blocks.pcapng"
    path.write_bytes(raw)
    said = subprocess.run(
        ["tshark", "-r", str(path), "-T", "fields", "-e", "frame.number", "-e", "frame.len"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    said = [line.split("\t") for line in said if line]
    packets = read(raw)[1]
    assert [number for number, _ in said] == [str(number) for number in packets.number.tolist()]
    real = packets.interface != NONE
    assert [said[i][1] for i in np.flatnonzero(real)] == [str(n) for n in packets.original_bytes[real].tolist()]


def test_comments_of_packets_and_section() -> None:
    noted = option(2, b"\0\0\0\0") + option(1, "first ü".encode()) + option(1, b"second") + END
    raw = section_header(options=option(1, b"of the section") + END) + interface_block()
    raw += packet_block(1, b"abc") + packet_block(2, b"abcd", options=noted) + packet_block(3, b"a", options=END)
    assert read(raw)[0].comments == [Comment("of the section"), Comment("first ü", 2), Comment("second", 2)]


def test_options_without_end_mark_or_with_a_length_beyond_the_block_end_there() -> None:
    good, bad = option(1, b"good"), struct.pack("<HH", 1, 999) + b"bad."
    raw = section_header() + interface_block() + packet_block(1, b"abcd", options=good)
    raw += packet_block(2, b"abcd", options=good + bad)
    assert read(raw)[0].comments == [Comment("good", 1), Comment("good", 2)]


def statistics(interface: int, *options: tuple[int, int], order: str = "<") -> bytes:
    body = struct.pack(order + "III", interface, 0, 0)
    body += b"".join(option(code, struct.pack(order + "Q", value), order=order) for code, value in options)
    return block(5, body, order=order)


def test_drops_are_the_last_statistics_of_each_interface() -> None:
    raw = section_header() + interface_block() * 2 + packet_block(1, b"a")
    raw += statistics(0, (4, 100), (5, 1)) + statistics(1, (5, 10)) + statistics(0, (4, 200), (5, 3), (7, 4))
    assert read(raw)[0].dropped_packets == 17


def test_unknown_drops_are_unknown() -> None:
    raw = section_header() + interface_block() + packet_block(1, b"a")
    assert read(raw + statistics(0, (4, 100)))[0].dropped_packets is None
    assert read(raw + statistics(0, (4, 100), (5, 2**64 - 1)))[0].dropped_packets is None
    assert read(raw + statistics(0, (5, 0)))[0].dropped_packets == 0


def test_drop_counts_between_packets() -> None:
    lost = option(4, struct.pack("<Q", 6)) + END
    raw = (
        section_header() + interface_block() + packet_block(1, b"a", options=lost) + packet_block(2, b"b", options=lost)
    )
    assert read(raw)[0].dropped_packets == 12


def test_other_secrets_are_not_tls() -> None:
    raw = section_header() + interface_block() + block(10, struct.pack("<II", 0x57474B4C, 4) + b"wire")
    raw += secrets_block(b"one\n") + packet_block(1, b"x") + secrets_block(b"two\n")
    assert read(raw)[0].secrets == [b"one\n", b"two\n"]
