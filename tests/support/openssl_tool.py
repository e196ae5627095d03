"""``openssl s_server`` and ``s_client`` on loopback with a recorder between them, for what needs the real command (0-RTT data)."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from OpenSSL import crypto

from tests.support.tls_peers import BEGIN, ONE_WAY_NS, Sender, credential


def free_port() -> int:
    """A port of the loopback interface nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def openssl_server(folder: Path, *options: str) -> Iterator[int]:
    """A running ``s_server``; yields its port."""
    own = credential("ecdsa")
    (folder / "key.pem").write_bytes(crypto.dump_privatekey(crypto.FILETYPE_PEM, own.key))
    (folder / "cert.pem").write_bytes(crypto.dump_certificate(crypto.FILETYPE_PEM, own.certificate))
    port = free_port()
    command = ["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-key", "key.pem", "-cert", "cert.pem"]
    process = subprocess.Popen(
        [*command, *options], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(port)
        yield port
    finally:
        process.kill()
        process.wait(10)
        if process.stdin:
            process.stdin.close()


def _wait_for(port: int) -> None:
    for _ in range(100):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise TimeoutError(f"nobody listens on port {port}")


class Recorder:
    """Forwards one connection and takes down both directions, each arrival one millisecond after the one before."""

    def __init__(self, port: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._server_port = port
        self.from_client, self.from_server = Sender(1), Sender(2)
        self._now = BEGIN
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._listener, suppress(OSError):
            client, _ = self._listener.accept()
            server = socket.create_connection(("127.0.0.1", self._server_port))
            back = threading.Thread(target=self._forward, args=(server, client, self.from_server), daemon=True)
            back.start()
            self._forward(client, server, self.from_client)
            back.join(10)
            client.close()
            server.close()

    def _forward(self, source: socket.socket, target: socket.socket, sender: Sender) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                with self._lock:
                    self._now += ONE_WAY_NS
                    sender.sent(data, self._now)
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def join(self) -> None:
        """Waits for the end of the connection."""
        self._thread.join(10)


def openssl_client(folder: Path, port: int, *options: str, lines: tuple[bytes, ...] = (), pause_s: float = 0.3) -> None:
    """Runs ``s_client`` to its end: sends the lines, with a pause before each and before it closes."""
    process = subprocess.Popen(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", *options],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    try:
        with suppress(BrokenPipeError):
            for line in lines:
                time.sleep(pause_s)
                process.stdin.write(line + b"\n")
                process.stdin.flush()
            time.sleep(pause_s)
            process.stdin.close()
        process.wait(10)
    finally:
        process.kill()
        process.wait(10)
