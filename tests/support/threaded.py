"""A server of a few lines: a thread accepts, and each connection has one of its own."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self


def pump(source: socket.socket, sink: socket.socket) -> None:
    """Octets one way until either side ends."""
    with contextlib.suppress(OSError, ValueError):
        while data := source.recv(65_536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


class Threaded:
    """Accepts in a thread, serves each connection in another; everything ends with the block."""

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """No more connections, and an end to those that are open."""
        self._listener.close()
        for sock in self._open:
            sock.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(client)
            threading.Thread(target=self._guarded, args=(client,), daemon=True).start()

    def _guarded(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError, ssl.SSLError, IndexError, struct.error):
            self._serve(client)

    def tunnel(self, client: socket.socket, target: tuple[str, int]) -> None:
        """Both ways between a client and a target."""
        upstream = socket.create_connection(target)
        self._open.append(upstream)
        back = threading.Thread(target=pump, args=(upstream, client), daemon=True)
        back.start()
        pump(client, upstream)
        back.join()
