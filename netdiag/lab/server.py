"""The lab's HTTPS server: an LLM-like API on HTTP/1.1 and HTTP/2 that does exactly what it is told and logs when it did it.

with LabServer(LabConfig(behaviour=Behaviour(wait_ms=100))) as server:
    httpx.get(server.url + "/v1/models", verify=server.ca_file)
    print(server.log.exchanges())
"""

from __future__ import annotations

import socket
from functools import partial
from typing import TextIO

from netdiag.lab.certificates import Authority
from netdiag.lab.config import LabConfig
from netdiag.lab.conversation import serve_connection
from netdiag.lab.link import Link
from netdiag.lab.listening import AddressInUse, Sockets
from netdiag.lab.service import Service
from netdiag.lab.tls_server import TlsServer, handshake
from netdiag.lab.work import Backend

__all__ = ["AddressInUse", "LabConfig", "LabServer"]


class LabServer(Service):
    """The server; see ``LabConfig`` for what it can do and ``Behaviour`` for what each request can ask of it."""

    def __init__(self, config: LabConfig | None = None, *, log_stream: TextIO | None = None) -> None:
        """Nothing is opened before ``start``. ``log_stream`` gets the truth as JSON lines while it is made."""
        self.config = config = config or LabConfig()
        super().__init__(sockets_of(config), log_stream=log_stream)
        self.scheme = "https" if config.tls else "http"
        self._backend = Backend.of(config)
        self._tls: TlsServer | None = None

    @property
    def ca_file(self) -> str:
        """The root certificate to trust, as a PEM file that lives as long as the server."""
        return str(self.folder / "ca.pem")

    def prepare(self) -> None:
        """A certificate, unless it is clear text."""
        if not self.config.tls:
            return
        authority = Authority()
        (self.folder / "ca.pem").write_bytes(authority.pem)
        leaf = authority.issue(self.config.names, chain_bytes=self.config.chain_bytes)
        self._tls = TlsServer(self.config, leaf, self.folder)

    async def serve(self, sock: socket.socket, number: int) -> None:
        """TLS where there is any, then HTTP until either side ends."""
        config = self.config
        link = Link(sock, nodelay=config.nodelay, record_bytes=config.record_bytes)
        secure = None if self._tls is None else partial(handshake, link, self._tls, config, self.log, number)
        await serve_connection(link, number, config, self._backend, self.log, secure)


def sockets_of(config: LabConfig) -> Sockets:
    """The part of the configuration that makes listening sockets."""
    return Sockets(
        host=config.host,
        port=config.port,
        backlog=config.backlog,
        receive_buffer_bytes=config.receive_buffer_bytes,
        send_buffer_bytes=config.send_buffer_bytes,
    )
