"""Compressed captures, pipes and standard input: the same packets, and bounds on what comes out."""

from __future__ import annotations

import gzip
import io
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import lz4.frame
import pytest
import zstandard

from netdiag.capture import compression
from netdiag.capture.source import open_capture
from netdiag.errors import CaptureFileError
from tests.support.packets import pcap, pcapng, tcp_conversation

FRAMES = tcp_conversation([(0, b"GET / HTTP/1.1\r\n\r\n"), (1, os.urandom(60_000))])
RAW = pcap(FRAMES)
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
    ".lz4": lz4.frame.compress,
}


def count(source: object) -> int:
    with open_capture(source) as capture:  # type: ignore[arg-type]
        return sum(len(window.packets) for window in capture.windows())


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("raw", [RAW, pcapng(FRAMES)], ids=["pcap", "pcapng"])
def test_known_by_content_not_by_name(suffix: str, raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "misnamed.txt"
    path.write_bytes(COMPRESS[suffix](raw))
    with open_capture(path) as capture:
        assert sum(len(w.packets) for w in capture.windows()) == len(FRAMES)
        assert capture.format.endswith(suffix)
        assert capture.size_bytes == len(raw)
        assert capture.anomalies == []
        assert bytes(capture.buffer[:]) == raw


@pytest.mark.parametrize("suffix", COMPRESS)
def test_several_members_are_one_file(suffix: str) -> None:
    parts = RAW[:1000], RAW[1000:30_000], RAW[30_000:]
    assert count(io.BytesIO(b"".join(COMPRESS[suffix](part) for part in parts))) == len(FRAMES)


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("kept", [0.3, 0.7, 0.99])
def test_cut_compressed_files_yield_what_is_there(suffix: str, kept: float) -> None:
    compressed = COMPRESS[suffix](RAW)
    with open_capture(io.BytesIO(compressed[: int(len(compressed) * kept)])) as capture:
        packets = sum(len(w.packets) for w in capture.windows())
        assert packets < len(FRAMES)
        assert capture.cut_at_byte is not None
        assert capture.anomalies


@pytest.mark.parametrize("suffix", COMPRESS)
def test_damaged_compressed_files_yield_what_is_before(suffix: str) -> None:
    compressed = bytearray(COMPRESS[suffix](RAW * 3))
    compressed[len(compressed) // 2 : len(compressed) // 2 + 40] = b"\xff" * 40
    with open_capture(io.BytesIO(bytes(compressed))) as capture:
        list(capture.windows())
        assert capture.anomalies


@pytest.mark.parametrize("suffix", COMPRESS)
def test_bombs_are_stopped(suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "MAX_RATIO", 10)
    monkeypatch.setattr(compression, "FREE_BYTES", 1 << 20)
    bomb = COMPRESS[suffix](RAW + bytes(20 << 20))
    with open_capture(io.BytesIO(bomb)) as capture:
        assert capture.size_bytes <= max(1 << 20, 10 * len(bomb))
        assert any("more than 10 times" in a.reason for a in capture.anomalies)
        assert capture.cut_at_byte == capture.size_bytes


@pytest.mark.parametrize("compress", [*COMPRESS.values(), bytes])
def test_the_cap_holds_for_everything_that_is_spooled(compress: Callable[[bytes], bytes]) -> None:
    capture = open_capture(io.BytesIO(compress(RAW)), max_bytes=5000)
    assert capture.size_bytes == 5000
    assert any("larger than 5000 bytes" in a.reason for a in capture.anomalies)
    assert capture.cut_at_byte == 5000


def test_large_spools_are_mapped_from_a_file_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = pcap(FRAMES * 60)
    assert len(raw) > compression.IN_MEMORY_BYTES
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_capture(io.BytesIO(gzip.compress(raw))) as capture:
        assert not isinstance(capture.buffer, bytes)
        assert sum(len(w.packets) for w in capture.windows()) == 60 * len(FRAMES)
        assert os.listdir(tmp_path) == []


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Standard:
        buffer = io.BytesIO(RAW)

    monkeypatch.setattr(sys, "stdin", Standard())
    with open_capture("-") as capture:
        assert sum(len(w.packets) for w in capture.windows()) == len(FRAMES)
        assert capture.path is None


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_fifo_in_small_pieces(compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """The writer pauses in the middle of packets; the last packet is not held back."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    data = compress(RAW)

    def write() -> None:
        with path.open("wb", buffering=0) as file:
            for start in range(0, len(data), 777):
                file.write(data[start : start + 777])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert count(path) == len(FRAMES)
    finally:
        writer.join(10)


def test_an_open_file_is_mapped(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(RAW)
    with path.open("rb") as file:
        assert count(file) == len(FRAMES)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CaptureFileError, match="No such file") as caught:
        open_capture(tmp_path / "absent.pcap")
    assert caught.value.path == str(tmp_path / "absent.pcap")
    assert caught.value.exit_code == 65


def test_a_folder_is_no_capture(tmp_path: Path) -> None:
    with pytest.raises(CaptureFileError, match="directory"):
        open_capture(tmp_path)


def test_opening_and_closing_leaks_no_descriptors(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap.gz"
    path.write_bytes(gzip.compress(pcap(FRAMES * 60)))
    count(path)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        count(path)
    assert len(os.listdir("/proc/self/fd")) <= before, "those of other tests may be collected meanwhile"
