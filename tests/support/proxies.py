"""Proxies that the lab has not: TLS in front of another one, and SOCKS 5."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from netdiag.lab.certificates import Authority, write_private


def pump(source: socket.socket, sink: socket.socket) -> None:
    """Octets one way until either side ends."""
    with contextlib.suppress(OSError, ValueError):
        while data := source.recv(65_536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


class _Threads:
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


class TlsFront(_Threads):
    """Takes TLS off and passes the octets on to a port of this host: with a proxy behind it, an HTTPS proxy."""

    def __init__(self, behind_port: int, folder: Path) -> None:
        super().__init__(self._terminate)
        authority = Authority()
        leaf = authority.issue()
        self.ca_pem = authority.pem
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(
            write_private(folder / "front.pem", leaf.chain), write_private(folder / "front.key", leaf.key)
        )
        self._context.set_alpn_protocols(["http/1.1"])
        self._behind_port = behind_port

    def _terminate(self, client: socket.socket) -> None:
        secure = self._context.wrap_socket(client, server_side=True)
        self._open.append(secure)
        self.tunnel(secure, ("127.0.0.1", self._behind_port))


class Socks5(_Threads):
    """RFC 1928 without authentication, CONNECT to a name or an IPv4 address; it agrees after ``delay_s``."""

    def __init__(self, *, delay_s: float = 0.0) -> None:
        super().__init__(self._serve_socks)
        self._delay_s = delay_s

    def _serve_socks(self, client: socket.socket) -> None:
        methods = self._exactly(client, 2)[1]
        self._exactly(client, methods)
        client.sendall(b"\x05\x00")
        kind = self._exactly(client, 4)[3]
        size = self._exactly(client, 1)[0] if kind == 3 else 4
        address = self._exactly(client, size)
        host = address.decode("ascii") if kind == 3 else socket.inet_ntoa(address)
        (port,) = struct.unpack(">H", self._exactly(client, 2))
        time.sleep(self._delay_s)
        client.sendall(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
        self.tunnel(client, (host, port))

    def _exactly(self, client: socket.socket, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = client.recv(size - len(data))
            if not piece:
                raise OSError("the client went away")
            data += piece
        return data
