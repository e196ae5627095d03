"""A CONNECT proxy (RFC 9110 section 9.3.6) that can be slow, far away, or unwilling."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TextIO

import h11

from netdiag.lab.clock import Stamp, ns, until
from netdiag.lab.link import Link, PeerGone, Received
from netdiag.lab.listening import Sockets
from netdiag.lab.relay import Flow, RelayConfig, join
from netdiag.lab.service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyConfig:
    """What the proxy does before it is a tunnel, and to the octets in the tunnel."""

    host: str = "localhost"
    port: int = 0
    connect_ms: float = 0.0
    """Between the CONNECT request and the connection to the target."""
    refuse_with: int | None = None
    """Answer every CONNECT with this status (407, 403, 502 …) instead of a tunnel."""
    up: Flow = field(default_factory=Flow)
    down: Flow = field(default_factory=Flow)
    seed: int = 0


class LabProxy(Service):
    """The proxy in a thread of its own; its log has ``request-last`` (CONNECT read) and ``headers`` (answered) rows."""

    def __init__(self, config: ProxyConfig | None = None, *, log_stream: TextIO | None = None) -> None:
        """Nothing is opened before ``start``."""
        self.config = config or ProxyConfig()
        super().__init__(Sockets(host=self.config.host, port=self.config.port), log_stream=log_stream)

    async def serve(self, sock: socket.socket, number: int) -> None:
        """CONNECT, then octets both ways."""
        link = Link(sock)
        try:
            target, last = await self._request(link)
            self.log.add("request-last", number, at=last.at, request=0, method="CONNECT", path=target or "")
            status = self._status(target)
            if status != HTTPStatus.OK:
                await self._answer(link, number, status)
                link.end()
                return await link.linger()
            await until(Stamp.at_wall(last.at).after(ns(self.config.connect_ms)))
            await self._answer(link, number, status)
        except (PeerGone, h11.RemoteProtocolError):
            link.reset()
            return None
        assert target is not None
        host, _, port = target.rpartition(":")
        relay = RelayConfig(
            target=(host.strip("[]"), int(port)), up=self.config.up, down=self.config.down, seed=self.config.seed
        )
        return await join(link, relay, self.log, number)

    async def _request(self, link: Link) -> tuple[str | None, Received]:
        """The authority that a CONNECT asks for (None for any other method) and the octets that ended its head."""
        connection = h11.Connection(h11.SERVER)
        last = Received(b"", 0)
        while (event := connection.next_event()) is h11.NEED_DATA:
            received = await link.receive()
            if received is None:
                raise PeerGone("no request")
            last = received
            connection.receive_data(received.data)
        if not isinstance(event, h11.Request) or event.method != b"CONNECT":
            return None, last
        return event.target.decode("latin-1"), last

    def _status(self, target: str | None) -> HTTPStatus:
        if target is None:
            return HTTPStatus.METHOD_NOT_ALLOWED
        if self.config.refuse_with is not None:
            return HTTPStatus(self.config.refuse_with)
        return HTTPStatus.OK if target.rpartition(":")[2].isdigit() else HTTPStatus.BAD_REQUEST

    async def _answer(self, link: Link, number: int, status: HTTPStatus) -> None:
        phrase = "Connection established" if status == HTTPStatus.OK else status.phrase
        extra = "proxy-authenticate: Basic\r\n" if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED else ""
        length = "" if status == HTTPStatus.OK else "content-length: 0\r\nconnection: close\r\n"
        sent = await link.send(f"HTTP/1.1 {int(status)} {phrase}\r\n{extra}{length}\r\n".encode())
        self.log.add("headers", number, at=sent.at, request=0, status=int(status))
