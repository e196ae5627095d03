"""Serving in the foreground as a process of its own: a clean ^C, and one sentence when the port is taken."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import httpx
import pytest

from netdiag.lab import AddressInUse, Behaviour, LabConfig, LabServer, serve
from tests.support.lab import StartLab, client_for, eventually

_SCRIPT = """
import sys
from netdiag.lab import LabConfig, serve
def announce(server):
    sys.stdout.write(server.url + "\\n"); sys.stdout.flush()
sys.exit(serve(LabConfig(), announce=announce, log_stream=sys.stderr))
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_cleanly(number: signal.Signals, code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("https://localhost:")
    process.send_signal(number)
    _, errors = process.communicate(timeout=10)
    assert process.returncode == code
    assert "Traceback" not in errors


def test_serves_until_told(start_lab: StartLab) -> None:
    ended, announced = threading.Event(), list[LabServer]()

    def announce(server: LabServer) -> None:
        announced.append(server)
        with client_for(server) as client:
            assert client.get("/").status_code == 200
        ended.set()

    assert serve(LabConfig(), announce=announce, ended=ended) == 0
    assert len(announced[0].log.exchanges()) == 1


def test_a_port_in_use_is_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(AddressInUse) as caught:
            LabServer(LabConfig(port=port)).start()
    assert caught.value.exit_code == 69
    assert caught.value.message == f"localhost port {port} is in use"


def test_keys_are_private_and_everything_is_gone_afterwards() -> None:
    before = set(Path(tempfile.gettempdir()).glob("netdiag-lab-*"))
    with LabServer(LabConfig()) as server:
        folder = Path(server.ca_file).parent
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        assert stat.S_IMODE(os.stat(folder / "key.pem").st_mode) == 0o600
    assert not folder.exists()
    assert folder not in before
    eventually(lambda: not any(t.name == "LabServer" for t in threading.enumerate()))


def test_key_log_is_private(tmp_path: Path) -> None:
    keylog = tmp_path / "keys.txt"
    with LabServer(LabConfig(keylog=str(keylog), behaviour=Behaviour())) as server, client_for(server) as client:
        client.get("/")
    assert stat.S_IMODE(keylog.stat().st_mode) == 0o600
    assert "CLIENT_TRAFFIC_SECRET_0" in keylog.read_text()


def test_stop_twice_and_never_started() -> None:
    server = LabServer(LabConfig())
    server.stop()
    server.start()
    url = server.url
    server.stop()
    server.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)
