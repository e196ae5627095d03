"""Files that are cut, damaged or odd: reading goes on, and says what was skipped."""

from __future__ import annotations

import io
import random
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.capture.source import open_capture
from netdiag.wire.decode import decode
from netdiag.wire.tables import NONE
from tests.support.packets import (
    EPOCH_NS,
    block,
    interface_block,
    option,
    packet_block,
    pcapng,
    section_header,
)
from tests.support.reading import END, FRAMES, contents, read
from tests.support.tools import needs_capinfos

NANOSECONDS = option(9, b"\x09") + END


def test_packets_of_interfaces_that_are_not_described() -> None:
    raw = (
        section_header()
        + packet_block(1, b"abc", interface=0)
        + interface_block()
        + packet_block(1, b"abc", interface=5)
    )
    capture, packets = read(raw)
    assert len(packets) == 2
    assert packets.interface.tolist()[1] == NONE
    assert "does not describe" in capture.anomalies[0].reason
    (window,) = open_capture(io.BytesIO(raw)).windows()
    assert decode(window).not_decoded["unknown interface"] == 1


def test_a_packet_longer_than_its_block_is_cut_to_it() -> None:
    wrong = bytearray(packet_block(1, b"abcdefgh"))
    struct.pack_into("<I", wrong, 20, 4000)
    raw = section_header() + interface_block(options=NANOSECONDS) + bytes(wrong) + packet_block(2, b"z")
    capture, packets = read(raw)
    assert contents(raw, packets) == [(1, b"abcdefgh"), (2, b"z")]
    assert "longer than their blocks" in capture.anomalies[0].reason
    assert capture.anomalies[0].packet == 1


def test_a_short_interface_block_is_an_anomaly() -> None:
    raw = section_header() + block(1, b"\1\0\0\0") + packet_block(1, b"x")
    capture, packets = read(raw)
    assert len(packets) == 1
    assert any("too short" in a.reason for a in capture.anomalies)


def test_blocks_whose_writer_forgot_the_padding_of_the_length() -> None:
    data = b"abcde"
    head = struct.pack("<IIIII", 0, 0, 7, 5, 5) + data
    odd = struct.pack("<II", 6, 12 + len(head)) + head + bytes(3) + struct.pack("<I", 12 + len(head))
    raw = section_header() + interface_block(options=NANOSECONDS) + odd + packet_block(8, b"z")
    assert contents(raw, read(raw)[1]) == [(7, data), (8, b"z")]


def blocks_of(raw: bytes) -> list[int]:
    """Where blocks begin, and the end."""
    places = [0]
    while places[-1] < len(raw):
        places.append(places[-1] + struct.unpack_from("<I", raw, places[-1] + 4)[0])
    return places


def test_cut_at_every_byte() -> None:
    raw = pcapng(FRAMES[:7], keylog=b"x" * 30)
    places = blocks_of(raw)
    everything = contents(raw, read(raw)[1])
    for size in range(4, len(raw)):
        capture, packets = read(raw[:size])
        whole = sum(place <= size for place in places[1:])
        assert contents(raw, packets) == everything[: max(0, whole - 3)]
        if size in places:
            assert capture.cut_at_byte is None
        else:
            assert capture.cut_at_byte == places[whole]


@pytest.mark.parametrize("length", [0, 8, 0x7FFFFFFC, 0xFFFFFFFF])
@pytest.mark.parametrize("big_endian", [False, True])
def test_reading_goes_on_after_an_impossible_length(length: int, big_endian: bool) -> None:
    raw = bytearray(pcapng(FRAMES, big_endian=big_endian))
    order = ">" if big_endian else "<"
    place = bytes(raw).index(FRAMES[4][1]) - 28
    struct.pack_into(order + "I", raw, place + 4, length)
    capture, packets = read(bytes(raw))
    assert contents(bytes(raw), packets) == FRAMES[:4] + FRAMES[5:]
    assert capture.cut_at_byte == place


def test_reading_goes_on_after_lengths_that_do_not_agree() -> None:
    raw = bytearray(pcapng(FRAMES))
    place = bytes(raw).index(FRAMES[4][1]) - 28
    struct.pack_into("<I", raw, place + 4, struct.unpack_from("<I", raw, place + 4)[0] + 8)
    capture, packets = read(bytes(raw))
    assert contents(bytes(raw), packets) == FRAMES[:4] + FRAMES[5:]
    assert capture.cut_at_byte == place


def test_octets_between_blocks_are_skipped() -> None:
    first, second = pcapng(FRAMES), pcapng(FRAMES)
    raw = first + b"\xff\x01\xfejunk of a broken disk" * 50 + second
    capture, packets = read(raw)
    assert contents(raw, packets) == FRAMES * 2
    assert capture.cut_at_byte == len(first)


def test_reading_goes_on_at_a_section_of_the_other_byte_order() -> None:
    first, second = pcapng(FRAMES), pcapng(FRAMES, big_endian=True)
    raw = first + b"\xff\x01junk" * 30 + second
    capture, packets = read(raw)
    assert contents(raw, packets) == FRAMES * 2
    assert capture.cut_at_byte == len(first)


@settings(max_examples=150, deadline=None)
@given(
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 6000), st.integers(0, 255)), max_size=12),
    st.integers(0, 3000),
    st.integers(0, 6000),
)
def test_mutations_never_raise_and_packets_never_overlap(
    big_endian: bool, changes: list[tuple[int, int]], removed: int, at: int
) -> None:
    raw = bytearray(pcapng(FRAMES, big_endian=big_endian, keylog=b"k" * 50))
    for place, value in changes:
        raw[12 + place % (len(raw) - 12)] = value
    place = 12 + at % (len(raw) - 12)
    del raw[place : place + removed]
    capture, packets = read(bytes(raw))
    ends = packets.data_offset + packets.captured_bytes
    real = packets.interface != NONE
    assert (ends[real] <= len(raw)).all()
    assert (packets.captured_bytes >= 0).all()
    assert (np.diff(packets.data_offset) > 0).all()
    assert capture.packets == len(packets)


def test_long_files_are_read_in_lanes_and_equal_one_by_one() -> None:
    generator = random.Random(3)
    packets = [(EPOCH_NS + n, generator.randbytes(generator.randint(1, 1500))) for n in range(6000)]
    raw = pcapng(packets)
    assert len(raw) > 4 << 20
    assert contents(raw, read(raw)[1]) == packets


@needs_capinfos
def test_capinfos_counts_the_same_packets_in_a_mutated_file(tmp_path: Path) -> None:
    """Mutations of packet octets only: the structure stays, and so do the counts."""
    raw = bytearray(pcapng(FRAMES))
    start = bytes(raw).index(FRAMES[0][1])
    raw[start : start + 20] = b"\xff" * 20
    path = tmp_path / "x.pcapng"
    path.write_bytes(raw)
    said = subprocess.run(["capinfos", "-c", "-M", str(path)], capture_output=True, text=True, check=True).stdout
    assert f"Number of packets:   {len(read(bytes(raw))[1])}" in said
