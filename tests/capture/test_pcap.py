"""The pcap format in all its shapes, whole and damaged."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.capture.source import open_capture
from netdiag.wire.tables import RawPackets
from tests.support.packets import EPOCH_NS, Timed, ethernet, ipv4, pcap, tcp, timed
from tests.support.reading import FRAMES, contents, read


@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize("nanosecond", [False, True])
def test_orders_and_resolutions(big_endian: bool, nanosecond: bool) -> None:
    frames = [(at + (123 if nanosecond else 0), frame) for at, frame in FRAMES]
    raw = pcap(frames, big_endian=big_endian, nanosecond=nanosecond)
    capture, packets = read(raw)
    assert contents(raw, packets) == frames
    assert packets.number.tolist() == list(range(1, len(frames) + 1))
    assert capture.format == ("pcap-ns" if nanosecond else "pcap")
    assert capture.timestamp_resolution_ns == (1 if nanosecond else 1000)
    assert (capture.anomalies, capture.cut_at_byte, capture.dropped_packets) == ([], None, None)
    assert capture.packets == len(frames)


@pytest.mark.parametrize(
    ("magic", "header", "name"),
    [
        (0xA1B2CD34, 24, "pcap-modified"),
        (0xA1B2CD34, 28, "pcap-modified"),
        (0xA1B2C3D4, 24, "pcap"),
        (0xA1B2C3D4, 20, "pcap"),
    ],
)
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("count", [2, len(FRAMES)])
def test_variants_with_longer_record_headers(magic: int, header: int, name: str, order: str, count: int) -> None:
    raw = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, 1)
    for at, frame in FRAMES[:count]:
        raw += struct.pack(order + "IIII", at // 10**9, at % 10**9 // 1000, len(frame), len(frame))
        raw += (struct.pack(order + "I", 3) + b"\x08\0" + bytes(6))[: header - 16] + frame
    capture, packets = read(raw)
    assert contents(raw, packets) == FRAMES[:count]
    assert (capture.format, capture.anomalies) == (name, [])


def test_a_length_beyond_the_end_of_the_file_makes_no_variant() -> None:
    """Read with headers of 20 octets, the second record is one of 262144 octets, its seconds those of the first."""
    frame = ethernet(ipv4(tcp(b"x" * 20)))
    raw = pcap([])
    for seconds, fraction in ((500_000, 0), (90_000_000, 500_000), (91_000_000, 0)):
        raw += struct.pack("<IIII", seconds, fraction, len(frame), 262_144) + frame
    capture, packets = read(raw)
    assert packets.captured_bytes.tolist() == [len(frame)] * 3
    assert (packets.data_offset - packets.data_offset[0]).tolist() == [0, len(frame) + 16, 2 * (len(frame) + 16)]
    assert capture.cut_at_byte is None


def test_packets_full_of_zeros_at_time_zero_make_no_variant() -> None:
    """Read with longer headers, their octets are records of no length, as many as one likes."""
    frames = [(second * 10**9, ethernet(ipv4(tcp(bytes(size))))) for second, size in enumerate((700, 400, 300))]
    raw = pcap(frames)
    capture, packets = read(raw)
    assert contents(raw, packets) == frames
    assert capture.anomalies == []


@pytest.mark.parametrize("version", [(2, 2), (2, 3), (543, 0)])
def test_lengths_that_older_versions_had_the_other_way_round(version: tuple[int, int]) -> None:
    frame = ethernet(ipv4(tcp(b"x" * 50)))
    raw = struct.pack("<IHHiIII", 0xA1B2C3D4, *version, 0, 0, 65535, 1)
    for second in range(3):
        raw += struct.pack("<IIII", 1000 + second, 0, 500, len(frame)) + frame
    capture, packets = read(raw)
    assert packets.captured_bytes.tolist() == [len(frame)] * 3
    assert packets.original_bytes.tolist() == [500] * 3
    assert capture.anomalies == []


def test_ixia_file_header_is_four_octets_longer() -> None:
    raw = pcap(FRAMES)
    raw = struct.pack("<I", 0x1C0001AC) + raw[4:24] + struct.pack("<I", len(raw) - 24) + raw[24:]
    assert contents(raw, read(raw)[1]) == FRAMES


def test_frame_check_sequence_and_link_type_share_a_field() -> None:
    raw = bytearray(pcap(FRAMES))
    struct.pack_into("<I", raw, 20, 127 | 0x0400_0000 | 2 << 28)
    capture, _ = read(bytes(raw))
    assert (capture.interfaces[0].link_type, capture.interfaces[0].fcs_bytes) == (127, 4)


def test_header_only() -> None:
    capture, packets = read(pcap([]))
    assert (len(packets), capture.anomalies, capture.cut_at_byte) == (0, [], None)


@pytest.mark.parametrize("size", range(4, 24))
def test_cut_inside_the_file_header(size: int) -> None:
    capture, packets = read(pcap(FRAMES)[:size])
    assert len(packets) == 0
    assert capture.cut_at_byte == 0
    assert len(capture.anomalies) == 1


@pytest.mark.parametrize("window_bytes", [1, 100, 1000, 10**6])
def test_windows_are_one_file(window_bytes: int) -> None:
    raw = pcap(FRAMES)
    capture = open_capture(io.BytesIO(raw))
    windows = list(capture.windows(window_bytes))
    assert [end for w in windows for end in [w.end_offset]] == sorted(w.end_offset for w in windows)
    assert windows[-1].end_offset == len(raw)
    assert contents(raw, RawPackets.concat([w.packets for w in windows])) == FRAMES
    assert len(windows) == (len(FRAMES) if window_bytes == 1 else len(windows))


def test_windows_start_again_from_the_beginning() -> None:
    capture = open_capture(io.BytesIO(pcap(FRAMES)[:-1]))
    for _ in range(2):
        assert sum(len(w.packets) for w in capture.windows()) == len(FRAMES) - 1
        assert len(capture.anomalies) == 1


@pytest.mark.parametrize(("big_endian", "nanosecond"), [(False, True), (True, False)])
def test_cut_at_every_byte(big_endian: bool, nanosecond: bool) -> None:
    """What is before the cut is read, and the cut is said to be where the last whole packet ends."""
    raw = pcap(FRAMES, big_endian=big_endian, nanosecond=nanosecond)
    ends = np.cumsum([24] + [16 + len(frame) for _, frame in FRAMES]).tolist()
    for size in range(24, len(raw)):
        capture, packets = read(raw[:size])
        whole = sum(end <= size for end in ends) - 1
        assert contents(raw, packets) == contents(raw, read(raw)[1])[:whole]
        if size in ends:
            assert capture.cut_at_byte is None
        else:
            assert capture.cut_at_byte == ends[whole]
            assert len(capture.anomalies) == 1


def offsets(frames: list[Timed]) -> list[int]:
    """Where each record's header is."""
    return np.cumsum([24] + [16 + len(frame) for _, frame in frames]).tolist()[:-1]


@pytest.mark.parametrize("length", [0x7FFFFFFF, 0xFFFFFFFF, 300_000, 1_000_000])
def test_reading_goes_on_after_an_impossible_length(length: int) -> None:
    raw = bytearray(pcap(FRAMES))
    place = offsets(FRAMES)[3]
    struct.pack_into("<I", raw, place + 8, length)
    capture, packets = read(bytes(raw))
    assert contents(bytes(raw), packets) == FRAMES[:3] + FRAMES[4:]
    assert capture.cut_at_byte == place
    (anomaly,) = capture.anomalies
    assert anomaly.offset == place
    assert f"goes on at byte {offsets(FRAMES)[4]}" in anomaly.reason


@pytest.mark.parametrize("error", [-7, -1, 1, 5, 13, 200])
def test_reading_goes_on_after_a_length_that_is_a_little_wrong(error: int) -> None:
    """The wrong length leads into, or past, the next record: nothing is invented, and at most the packets around it are lost."""
    raw = bytearray(pcap(FRAMES))
    place = offsets(FRAMES)[4]
    size = len(FRAMES[4][1])
    struct.pack_into("<II", raw, place + 8, size + error, max(size, size + error))
    capture, packets = read(bytes(raw))
    got = contents(bytes(raw), packets)
    assert [at for at, _ in got if at > FRAMES[6][0]] == [at for at, _ in FRAMES if at > FRAMES[6][0]]
    assert got[:4] == FRAMES[:4]
    assert len(got) <= len(FRAMES) + 1
    assert capture.cut_at_byte is not None
    ends = packets.data_offset + packets.captured_bytes
    assert (ends[:-1] <= packets.data_offset[1:]).all()


def test_one_odd_time_before_damage_costs_no_packet() -> None:
    """Where the next record's time is like the earlier ones', the odd one's lengths led to a record, so it is one."""
    raw = bytearray(pcap(FRAMES))
    struct.pack_into("<I", raw, offsets(FRAMES)[1], 761_195_582)
    struct.pack_into("<I", raw, offsets(FRAMES)[4] + 8, 0x7FFFFFFF)
    _, packets = read(bytes(raw))
    assert len(packets) == len(FRAMES) - 1


def test_octets_that_were_never_written() -> None:
    """A crash left zeros at the end: they are no packets."""
    raw = pcap(FRAMES)
    capture, packets = read(raw + bytes(100_000))
    assert len(packets) == len(FRAMES)
    assert capture.cut_at_byte == len(raw)


def test_octets_that_were_never_written_in_the_middle() -> None:
    raw = pcap(FRAMES)
    capture, packets = read(raw + bytes(5000) + raw[24:])
    assert len(packets) == 2 * len(FRAMES)
    assert capture.cut_at_byte == len(raw)


def test_a_packet_above_the_snap_length_is_read() -> None:
    raw = pcap(FRAMES, snap_bytes=262144)
    raw = raw[:16] + struct.pack("<I", 64) + raw[20:]
    capture, packets = read(raw)
    assert contents(raw, packets) == FRAMES
    assert capture.anomalies == []


def test_payload_that_looks_like_packets_is_payload() -> None:
    """A capture file downloaded inside the capture."""
    nested = pcap([(EPOCH_NS, b"n" * 40)] * 2000)
    frames = timed([ethernet(ipv4(tcp(nested[start : start + 1400]))) for start in range(0, len(nested), 1400)] * 80)
    raw = pcap(frames)
    assert len(raw) > 4 << 20  # long enough for lanes
    assert contents(raw, read(raw)[1]) == frames


def test_times_beyond_2038_and_fractions_beyond_a_second() -> None:
    raw = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
    raw += struct.pack("<IIII", 4_000_000_000, 1_500_000_000, 1, 1) + b"a"
    capture, packets = read(raw)
    assert packets.captured_at.tolist() == [4_000_000_000 * 10**9 + 1_500_000_000]
    assert capture.anomalies == []


@settings(max_examples=150, deadline=None)
@given(
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=12),
    st.integers(0, 3000),
    st.integers(0, 5000),
)
def test_mutations_never_raise_and_packets_never_overlap(
    big_endian: bool, changes: list[tuple[int, int]], removed: int, at: int
) -> None:
    raw = bytearray(pcap(FRAMES, big_endian=big_endian))
    for place, value in changes:
        raw[4 + place % (len(raw) - 4)] = value
    place = 24 + at % (len(raw) - 24)
    del raw[place : place + removed]
    capture, packets = read(bytes(raw))
    ends = packets.data_offset + packets.captured_bytes
    assert (ends <= len(raw)).all()
    assert (packets.captured_bytes >= 0).all()
    assert (ends[:-1] <= packets.data_offset[1:]).all()
    assert capture.packets == len(packets)
