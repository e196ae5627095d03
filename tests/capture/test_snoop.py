"""The snoop format (RFC 1761), whole and damaged."""

from __future__ import annotations

import io
import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.capture.snoop import is_snoop
from netdiag.capture.source import CaptureFile, open_capture
from netdiag.wire.decode import decode
from netdiag.wire.octets import Octets
from netdiag.wire.tables import RawPackets
from tests.support.packets import EPOCH_NS, Timed, ethernet, ipv4, snoop, tcp, tcp_conversation, timed
from tests.support.tools import needs_editcap, needs_tshark

FRAMES = [
    (at // 1000 * 1000, frame) for at, frame in tcp_conversation([(0, b"GET / HTTP/1.1\r\n\r\n"), (1, b"x" * 3000)])
]


def read(raw: bytes, window_bytes: int = 64 << 20) -> tuple[CaptureFile, list[Timed]]:
    """(time, octets) of each packet."""
    capture = open_capture(io.BytesIO(raw))
    tables = [window.packets for window in capture.windows(window_bytes)]
    if not tables:
        return capture, []
    packets = RawPackets.concat(tables)
    places = zip(
        packets.captured_at.tolist(), packets.data_offset.tolist(), packets.captured_bytes.tolist(), strict=True
    )
    return capture, [(at, raw[start : start + size]) for at, start, size in places]


def test_packets_times_and_drops() -> None:
    capture, packets = read(snoop(FRAMES, drops=7))
    assert packets == FRAMES
    assert (capture.format, capture.dropped_packets, capture.anomalies) == ("snoop", 7, [])
    assert capture.timestamp_resolution_ns == 1000
    assert read(snoop(FRAMES))[0].dropped_packets == 0


@pytest.mark.parametrize(
    ("data_link", "link_type"), [(0, 1), (2, 6), (4, 1), (8, 10), (0x12, 100), (0x80000001, 228), (0x80000005, 226)]
)
def test_data_links(data_link: int, link_type: int) -> None:
    capture, _ = read(snoop(FRAMES, data_link=data_link))
    assert capture.interfaces[0].link_type == link_type


def test_a_data_link_without_a_link_type_is_counted_by_its_number() -> None:
    (window,) = open_capture(io.BytesIO(snoop(FRAMES, data_link=5))).windows()
    assert dict(decode(window).not_decoded) == {"link type snoop data link 5": len(FRAMES)}


def test_cut_at_every_octet() -> None:
    raw = snoop(FRAMES)
    for end in range(4, len(raw)):
        capture, packets = read(raw[:end])
        assert packets == FRAMES[: len(packets)]
        whole = raw[:end] == snoop(FRAMES[: len(packets)])
        assert whole is (capture.cut_at_byte is None), end
        assert bool(capture.anomalies) is not whole


def test_reading_goes_on_behind_a_damaged_header() -> None:
    frames = timed([ethernet(ipv4(tcp(bytes([n]) * 200))) for n in range(40)])
    frames = [(at // 1000 * 1000, frame) for at, frame in frames]
    raw = bytearray(snoop(frames))
    fifth = len(snoop(frames[:5]))
    raw[fifth + 8 : fifth + 12] = b"\xff\xff\xff\xff"
    capture, packets = read(bytes(raw))
    assert packets == frames[:5] + frames[6:]
    assert capture.cut_at_byte == fifth
    assert f"reading goes on at byte {fifth + len(snoop(frames[:1])) - 16}" in capture.anomalies[0].reason


@pytest.mark.parametrize("window_bytes", [1 << 20, 64 << 20])
def test_lanes_find_what_the_walk_finds(window_bytes: int) -> None:
    draw = random.Random(3)
    frames = [(EPOCH_NS + n * 1000, draw.randbytes(draw.randrange(60, 1500))) for n in range(4000)]
    # Payloads that are themselves records of a snoop file.
    frames[1000:1200] = [(at, snoop(frames[:3])[16:]) for at, _ in frames[1000:1200]]
    capture, packets = read(snoop(frames), window_bytes)
    assert packets == frames
    assert capture.anomalies == []


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damage_anywhere_is_never_an_exception(data: st.DataObject) -> None:
    raw = bytearray(snoop(FRAMES))
    for _ in range(data.draw(st.integers(1, 6))):
        raw[data.draw(st.integers(8, len(raw) - 1))] = data.draw(st.integers(0, 255))
    if not is_snoop(Octets(bytes(raw))):
        return
    _, packets = read(bytes(raw))
    assert sum(len(frame) for _, frame in packets) <= len(raw)


@needs_tshark
@needs_editcap
def test_tshark_reads_the_same(tmp_path: Path) -> None:
    """A file that Wireshark's editcap wrote, and one of ours, against tshark."""
    mine, theirs = tmp_path / "mine.snoop", tmp_path / "theirs.snoop"
    mine.write_bytes(snoop(FRAMES))
    subprocess.run(["editcap", "-F", "snoop", mine, theirs], check=True, capture_output=True, timeout=60)
    fields = ["-e", "frame.time_epoch", "-e", "frame.len", "-e", "tcp.srcport"]
    for path in (mine, theirs):
        _, packets = read(path.read_bytes())
        said = subprocess.run(
            ["tshark", "-r", path, "-T", "fields", *fields], check=True, capture_output=True, text=True, timeout=60
        ).stdout.splitlines()
        assert [line.split("\t")[0] for line in said] == [f"{at // 10**9}.{at % 10**9:09}" for at, _ in packets]
        assert [int(line.split("\t")[1]) for line in said] == [len(frame) for _, frame in packets]
        assert len(said) == len(FRAMES)
