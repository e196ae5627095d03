"""What is opened, what is refused, and what is given back."""

from __future__ import annotations

import gzip
import io
import mmap
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.capture.source import open_capture
from netdiag.errors import CaptureFileError, NotACapture, UnsupportedFormat
from tests.support.packets import EPOCH_NS, pcap, pcapng, tcp_conversation

FRAMES = tcp_conversation([(1, b"x" * 3000)])


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("data", [pcap(FRAMES), pcapng(FRAMES), b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18"])
def test_cut_inside_the_magic_number(data: bytes, size: int) -> None:
    capture = open_capture(io.BytesIO(data[:size]))
    assert list(capture.windows()) == []
    assert (capture.format, capture.cut_at_byte) == ("unknown", 0)
    assert f"ends after {size} octets, inside the magic number of a" in capture.anomalies[0].reason


@pytest.mark.parametrize("data", [b"\n", b"\r", b"x", b"\xd4", b"\0\0", b"hi\n", b"  \n ", b"\x0a\x0a"])
def test_a_short_file_of_something_else_is_no_capture(data: bytes) -> None:
    with pytest.raises(NotACapture, match="not a capture file: it"):
        open_capture(io.BytesIO(data))


@given(st.binary(max_size=24))
def test_every_short_file_is_refused_or_said_to_be_cut(data: bytes) -> None:
    try:
        capture = open_capture(io.BytesIO(data))
    except CaptureFileError:
        return
    list(capture.windows())
    assert capture.cut_at_byte is not None


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    path.touch()
    with pytest.raises(NotACapture, match=r"empty\.pcap: the file is empty"):
        open_capture(path)
    with pytest.raises(NotACapture, match="the input is empty"):
        open_capture(io.BytesIO(gzip.compress(b"")))


def test_text_is_shown_as_text_and_harmless() -> None:
    with pytest.raises(NotACapture, match="text that begins with “Dear customer,”"):
        open_capture(io.BytesIO(b"\n  Dear customer,\r\nsecond line"))
    with pytest.raises(NotACapture, match=r"begins with 1b 5d 30 3b"):
        open_capture(io.BytesIO(b"\x1b]0;title\x07 more"))


def test_broken_compression_that_yields_nothing_is_an_error() -> None:
    with pytest.raises(CaptureFileError, match=r"nothing can be unpacked: damaged \.gz data"):
        open_capture(io.BytesIO(b"\x1f\x8b\x08garbage"))


def test_an_endless_pipe_of_something_else_is_not_read_to_its_end() -> None:
    class Endless(io.RawIOBase):
        asked = 0

        def read(self, size: int = -1) -> bytes:
            self.asked += 1
            return b"y\n" * (min(size, 1 << 16) // 2)

    endless = Endless()
    with pytest.raises(NotACapture):
        open_capture(endless)  # type: ignore[arg-type]
    assert endless.asked < 10


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
    with pytest.raises((UnsupportedFormat, NotACapture), match=name) as caught:
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
