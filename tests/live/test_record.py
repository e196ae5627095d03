"""Recording: to one file or a ring, stopped by time, size or from outside; every file is complete."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest

from netdiag.capture.record import RecordConfig, record
from netdiag.capture.source import open_capture
from netdiag.errors import OutputError, UsageError
from tests.support.probing import children, foreign_threads

pytestmark = pytest.mark.live


class Talker:
    """Sends 100 kB over loopback every few ms, until it is closed."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self._thread = threading.Thread(target=self._talk)
        self._thread.start()

    def close(self) -> None:
        """End it."""
        self._stop.set()
        self._thread.join()
        self._server.close()

    def _talk(self) -> None:
        with socket.create_connection(self._server.getsockname()) as client:
            server, _ = self._server.accept()
            with server:
                while not self._stop.wait(0.01):
                    client.sendall(b"x" * 100_000)
                    left = 100_000
                    while left:
                        left -= len(server.recv(left))


@pytest.fixture
def talker() -> object:
    """Traffic."""
    talking = Talker()
    yield talking
    talking.close()


def packets(path: str) -> int:
    """Packets of a complete file."""
    with open_capture(path) as capture:
        count = sum(len(window.packets) for window in capture.windows())
        assert not capture.anomalies
        assert capture.cut_at_byte is None
    return count


def test_by_time(talker: Talker, fast_backend: str, tmp_path: Path) -> None:
    path = str(tmp_path / "x.pcapng")
    seen: list[tuple[float, int]] = []
    done = record(
        RecordConfig(path=path, backend=fast_backend, ports=(talker.port,), hosts=("127.0.0.1",), seconds=0.6),
        stop=threading.Event(),
        progress=lambda seconds, octets: seen.append((seconds, octets)),
    )
    assert (done.paths, done.ended_by, done.dropped) == ((path,), "seconds", 0)
    assert packets(path) > 20
    assert seen == sorted(seen)


def test_by_size(talker: Talker, fast_backend: str, tmp_path: Path) -> None:
    path = str(tmp_path / "x.pcapng")
    config = RecordConfig(path=path, backend=fast_backend, ports=(talker.port,), hosts=("127.0.0.1",), megabytes=1)
    done = record(config, stop=threading.Event())
    assert done.ended_by == "megabytes"
    assert Path(path).stat().st_size >= 1_000_000
    packets(path)


def test_from_outside(fast_backend: str, tmp_path: Path) -> None:
    stop = threading.Event()
    threading.Timer(0.8, stop.set).start()
    began_s = time.monotonic()
    done = record(RecordConfig(path=str(tmp_path / "x"), backend=fast_backend, interface="lo"), stop=stop)
    assert done.ended_by == "stop"
    assert time.monotonic() - began_s < 5
    assert packets(done.paths[0]) >= 2  # our own markers


def test_a_ring_keeps_the_last_files(talker: Talker, fast_backend: str, tmp_path: Path) -> None:
    config = RecordConfig(
        path=str(tmp_path / "ring.pcapng"),
        backend=fast_backend,
        ports=(talker.port,),
        hosts=("127.0.0.1",),
        seconds=5,
        ring_files=2,
        ring_megabytes=1,
    )
    processes = children()
    done = record(config, stop=threading.Event())
    assert len(done.paths) == 2
    assert sorted(str(p) for p in tmp_path.iterdir()) == sorted(done.paths)
    assert int(Path(done.paths[-1]).stem[-5:]) > 2
    assert all(packets(path) for path in done.paths)
    assert children() == processes
    assert foreign_threads() == []


def test_nothing_is_overwritten(fast_backend: str, tmp_path: Path) -> None:
    taken = tmp_path / "x"
    taken.write_text("mine")
    with pytest.raises(OutputError, match="exists"):
        record(RecordConfig(path=str(taken), backend=fast_backend), stop=threading.Event())
    assert taken.read_text() == "mine"


@pytest.mark.parametrize("options", [{"ring_files": 1}, {"seconds": 0.0}, {"backend": "none"}, {"megabytes": -1.0}])
def test_what_cannot_be(options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        RecordConfig(path="x", **options)  # type: ignore[arg-type]
