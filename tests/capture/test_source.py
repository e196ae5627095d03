"""What is opened, what is refused, and what is given back."""

from __future__ import annotations

import io
import mmap
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.capture.source import open_capture
from netdiag.errors import CaptureFileError, UnsupportedFormat
from tests.support.packets import EPOCH_NS, pcap, pcapng, tcp_conversation

FRAMES = tcp_conversation([(1, b"x" * 3000)])


@pytest.mark.parametrize("size", range(4))
def test_too_short_to_say_what_it_is(size: int) -> None:
    capture = open_capture(io.BytesIO(pcap(FRAMES)[:size]))
    assert list(capture.windows()) == []
    assert (capture.format, capture.cut_at_byte) == ("empty", 0)
    assert len(capture.anomalies) == 1


def test_an_empty_file_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    path.touch()
    with open_capture(path) as capture:
        assert list(capture.windows()) == []
        assert "empty" in capture.anomalies[0].reason


def erf() -> bytes:
    return b"".join(
        struct.pack("<IIBB", 0, 1_700_000_000 + n, 2, 4) + struct.pack(">HHH", 64, 0, 46) + bytes(48) for n in range(4)
    )


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (b"snoop\0\0\0\0\0\0\4\0\0\0\4", "Shomiti"),
        (b"btsnoop\0\0\0\0\1", "Bluetooth"),
        (b"GMBU\0\2", "Network Monitor"),
        (erf(), "ERF"),
        (b'{"log": {"version": "1.2"}}', "HAR"),
        (b'  [{"a": 1}]', "JSON"),
        (b"# SSL/TLS secrets log file\nCLIENT_RANDOM 00 11\n", "key log"),
        (b"\xfd7zXZ\0\0\4", "xz"),
        (b"BZh91AY", "bzip2"),
        (b"PK\x03\x04\x14", "ZIP"),
        (b"\x7fELF\x02\x01", "executable"),
    ],
)
def test_recognised_and_refused(start: bytes, name: str) -> None:
    with pytest.raises(UnsupportedFormat, match=name) as caught:
        open_capture(io.BytesIO(start))
    assert caught.value.exit_code == 65


@pytest.mark.parametrize(
    "data", [b"hello, world", b"\0" * 100, b"<html></html>", b"\x0a\x0d\x0d\x0a\x1c\0\0\0\0\0\0\0rest"]
)
def test_anything_else_is_no_capture(data: bytes) -> None:
    with pytest.raises(CaptureFileError, match="not a capture file") as caught:
        open_capture(io.BytesIO(data))
    assert "pcapng" in (caught.value.advice or "")


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=300),
        st.binary(max_size=300).map(lambda b: pcap([])[:24] + b),
        st.binary(max_size=300).map(lambda b: pcapng([])[:40] + b),
    )
)
def test_any_octets_open_or_are_refused(data: bytes) -> None:
    try:
        capture = open_capture(io.BytesIO(data))
    except CaptureFileError:
        return
    for window in capture.windows():
        assert len(window.packets) > 0


def test_path_and_size(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(FRAMES))
    with open_capture(str(path)) as capture:
        assert (capture.path, capture.size_bytes) == (str(path), path.stat().st_size)
        assert capture.buffer[:4] == path.read_bytes()[:4]
        assert len({id(w.buffer) for w in capture.windows(100)}) == 1


def test_arrays_outlive_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(FRAMES))
    with open_capture(path) as capture:
        (window,) = capture.windows()
    start = int(window.packets.data_offset[0])
    assert bytes(window.buffer[start : start + 6]) == FRAMES[0][1][:6]
    capture.close()


def test_pages_of_earlier_windows_are_given_back_and_still_readable(tmp_path: Path) -> None:
    path = tmp_path / "big.pcap"
    frame = bytes(range(250)) * 6
    body = pcap([(EPOCH_NS, frame)])[24:]
    path.write_bytes(pcap([])[:24] + body * 40_000)
    with open_capture(path) as capture:
        assert isinstance(capture.buffer, mmap.mmap)
        peak, before = 0, resident_file_kilobytes()
        for window in capture.windows(4 << 20):
            for offset in window.packets.data_offset.tolist():
                assert capture.buffer[offset : offset + 4] == frame[:4]
            peak = max(peak, resident_file_kilobytes())
        assert peak - before < 30_000
        assert capture.buffer[40 : 40 + len(frame)] == frame


def resident_file_kilobytes() -> int:
    """Mapped file pages of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssFile"):
            return int(line.split()[1])
    raise AssertionError("no RssFile")
