"""Proxies that the lab has not: TLS in front of another one, and SOCKS 5."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from pathlib import Path

from netdiag.lab.certificates import Authority, write_private
from tests.support.threaded import Threaded


class TlsFront(Threaded):
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


class Socks5(Threaded):
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
