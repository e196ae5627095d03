"""Every backend: first and last packet there, none twice, counts told, nothing left behind, whatever the way out."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from netdiag.capture.choose import backend, live_capture, watched_interfaces
from netdiag.capture.filter import CaptureFilter, Rule
from netdiag.capture.live import LiveCapture, Task
from netdiag.capture.source import open_capture
from netdiag.errors import Unavailable, UsageError
from tests.support.probing import children, foreign_threads, open_descriptors

pytestmark = pytest.mark.live
ROUNDS = {"dumpcap": 6, "scapy": 6, "pyshark": 2}


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server socket on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def capture_of(name: str, path: Path, listener: socket.socket) -> LiveCapture:
    """A capture of one loopback port."""
    return live_capture(name=name, path=str(path), ports={listener.getsockname()[1]}, hosts=("127.0.0.1",))


def talk(listener: socket.socket, first: bytes, last: bytes) -> None:
    """One short connection."""
    with socket.create_connection(listener.getsockname()) as client:
        server, _ = listener.accept()
        with server:
            client.sendall(first)
            server.recv(100)
            server.sendall(last)
            client.recv(100)


def tcp_frames(path: Path, port: int) -> list[bytes]:
    """Captured TCP frames from or to the port, by the normal reader."""
    frames = []
    with open_capture(str(path)) as capture:
        assert capture.format == "pcapng"
        for window in capture.windows():
            rows = window.packets
            for offset, size in zip(rows.data_offset.tolist(), rows.captured_bytes.tolist(), strict=True):
                frame = bytes(window.buffer[offset : offset + size])
                if frame[23] == 6 and port in (
                    int.from_bytes(frame[34:36], "big"),
                    int.from_bytes(frame[36:38], "big"),
                ):
                    frames.append(frame)
        assert capture.timestamp_resolution_ns == 1
        assert not capture.anomalies
    return frames


def test_first_and_last_packet_every_time(backend_name: str, tmp_path: Path, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    for number in range(ROUNDS[backend_name]):
        path = tmp_path / f"{number}.pcapng"
        with capture_of(backend_name, path, listener) as capture:
            talk(listener, b"FIRST OCTETS", b"LAST OCTETS")
            captured = capture.finish()
        assert captured.complete, captured.notes
        frames = tcp_frames(path, port)
        assert frames[0][47] & 0x3F == 0x02  # the SYN
        assert any(b"FIRST OCTETS" in f for f in frames)
        assert any(b"LAST OCTETS" in f for f in frames)
        assert sum(f[47] & 0x01 for f in frames) == 2  # both FINs
        assert len(frames) == len(set(frames)), "a frame was captured twice"
        assert captured.counts.dropped == (None if backend_name == "pyshark" else 0)
        assert captured.counts.received


def test_nothing_is_left(backend_name: str, tmp_path: Path, listener: socket.socket) -> None:
    descriptors, processes = open_descriptors(), children()
    for number in range(ROUNDS[backend_name] // 2):
        with capture_of(backend_name, tmp_path / f"{number}", listener) as capture:
            capture.finish()
            capture.finish()
        with capture_of(backend_name, tmp_path / f"x{number}", listener):
            pass  # aborted
    assert open_descriptors() == descriptors
    assert children() == processes
    assert foreign_threads() == []


def test_an_exception_inside_ends_the_recorder(fast_backend: str, tmp_path: Path, listener: socket.socket) -> None:
    processes = children()
    with pytest.raises(ZeroDivisionError), capture_of(fast_backend, tmp_path / "x", listener):
        raise ZeroDivisionError
    assert children() == processes


_VICTIM = """
import sys, time
from netdiag.capture.choose import live_capture
capture = live_capture(name=sys.argv[1], path=sys.argv[2], ports={443}, hosts=("127.0.0.1",))
capture.start()
print("started", flush=True)
time.sleep(60)
"""


def processes_with(word: str) -> list[int]:
    """Processes whose command line holds a word."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                line = Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:
                continue
            if word.encode() in line:
                found.append(int(name))
    return found


def test_sigkill_of_the_parent_ends_everything(backend_name: str, tmp_path: Path) -> None:
    path = str(tmp_path / "victim.pcapng")
    victim = subprocess.Popen([sys.executable, "-c", _VICTIM, backend_name, path], stdout=subprocess.PIPE)
    assert victim.stdout is not None
    assert victim.stdout.readline() == b"started\n"
    assert len(processes_with(path)) > 1
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    victim.stdout.close()
    ends_s = time.monotonic() + (5 if backend_name == "pyshark" else 2)
    while processes_with(path) and time.monotonic() < ends_s:
        time.sleep(0.05)
    assert processes_with(path) == []
    with open_capture(path) as capture:  # what was written is a readable file
        assert sum(len(w.packets) for w in capture.windows()) >= 1


def test_an_interface_that_does_not_exist(backend_name: str, tmp_path: Path) -> None:
    recorder = backend(backend_name)
    with pytest.raises(Unavailable):
        recorder.start(Task(path=str(tmp_path / "x"), interfaces=("nosuch0",), filter=CaptureFilter((Rule(443),))))
    recorder.stop()
    assert foreign_threads() == []


def test_only_the_targets_traffic_is_captured(fast_backend: str, tmp_path: Path, listener: socket.socket) -> None:
    path = tmp_path / "x"
    with socket.create_server(("127.0.0.1", 0)) as other, capture_of(fast_backend, path, listener) as capture:
        talk(other, b"NOT OURS", b"NOT OURS")
        talk(listener, b"OURS", b"OURS")
        capture.finish()
    octets = path.read_bytes()
    assert b"NOT OURS" not in octets
    assert b"OURS" in octets


def test_dns_is_captured(fast_backend: str, tmp_path: Path, listener: socket.socket) -> None:
    path = tmp_path / "x"
    with capture_of(fast_backend, path, listener) as capture, socket.socket(type=socket.SOCK_DGRAM) as asker:
        asker.sendto(b"a question for nobody", ("127.0.0.1", 53))
        capture.finish()
    assert b"a question for nobody" in path.read_bytes()


def test_a_download_at_full_speed(fast_backend: str, tmp_path: Path, listener: socket.socket) -> None:
    path, size = tmp_path / "x", 20_000_000
    sender = (
        "import socket,sys; c=socket.create_connection(('127.0.0.1',int(sys.argv[1]))); "
        f"c.sendall(b'x'*{size}); c.shutdown(1); c.recv(1)"
    )
    with capture_of(fast_backend, path, listener) as capture:
        child = subprocess.Popen([sys.executable, "-c", sender, str(listener.getsockname()[1])])
        server, _ = listener.accept()
        with server:
            while server.recv(1 << 20):
                pass
        child.wait(10)
        captured = capture.finish()
    with open_capture(str(path)) as file:
        octets = sum(int(w.packets.captured_bytes.sum()) for w in file.windows())
    assert captured.complete
    assert captured.counts.dropped is not None
    assert octets >= size or captured.counts.dropped > 0  # nothing is missing without a word


def test_unknown_interface_cannot_be_forced() -> None:
    with pytest.raises(UsageError, match="nosuch0"):
        watched_interfaces((), forced="nosuch0")
