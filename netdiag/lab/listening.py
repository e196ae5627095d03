"""Listening sockets of the lab: one port on every loopback address, with arrival stamps."""

from __future__ import annotations

import contextlib
import errno
import socket
from dataclasses import dataclass

from netdiag.errors import NetdiagError, UsageError
from netdiag.lab.link import stamp_arrivals


class AddressInUse(NetdiagError):
    """The port is taken, or the address is not one of this machine."""

    exit_code = 69
    code = "address-in-use"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sockets:
    """Where to listen and with which buffers."""

    host: str = "localhost"
    port: int = 0
    backlog: int = 256
    receive_buffer_bytes: int | None = None
    send_buffer_bytes: int | None = None


def listen(sockets: Sockets) -> list[socket.socket]:
    """Listening sockets, all on one port. Raises AddressInUse with the address in the sentence, UsageError for what is no port."""
    if not 0 <= sockets.port <= 65_535:
        raise UsageError(f"{sockets.port} is no port: ports lie between 0 (any free one) and 65535")
    addresses = _addresses(sockets.host)
    last: OSError | None = None
    for _ in range(20):
        try:
            return _listeners(addresses, sockets)
        except OSError as error:
            last = error
            if sockets.port or error.errno != errno.EADDRINUSE:
                break
    assert last is not None
    reason = "is in use" if last.errno == errno.EADDRINUSE else f"cannot be used: {last.strerror}"
    raise AddressInUse(f"{sockets.host} port {sockets.port} {reason}", advice="choose another with --port")


def _listeners(addresses: list[tuple[socket.AddressFamily, str]], sockets: Sockets) -> list[socket.socket]:
    """One for each address: where any port will do, the first one's; which may be taken at another address."""
    with contextlib.ExitStack() as undo:
        opened: list[socket.socket] = []
        for family, address in addresses:
            port = opened[0].getsockname()[1] if opened else sockets.port
            with contextlib.suppress(_NoSuchFamily):
                opened.append(undo.enter_context(_listener(family, address, port, sockets, optional=bool(opened))))
        undo.pop_all()
    return opened


class _NoSuchFamily(Exception):
    """IPv6 is not there; IPv4 does."""


def _addresses(host: str) -> list[tuple[socket.AddressFamily, str]]:
    if host == "localhost":
        return [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
    try:
        found = [
            answer
            for part in host.split(",")
            for answer in socket.getaddrinfo(part, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        ]
    except OSError as error:
        raise UsageError(f"{host!r} is no address to listen on: {error}") from None
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))


def _listener(
    family: socket.AddressFamily, address: str, port: int, sockets: Sockets, *, optional: bool
) -> socket.socket:
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        if optional:
            raise _NoSuchFamily from None
        raise
    try:
        _prepare(sock, family, sockets)
        sock.bind((address, port))
        sock.listen(sockets.backlog)
    except OSError as error:
        sock.close()
        if optional and error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            raise _NoSuchFamily from None
        raise
    return sock


def _prepare(sock: socket.socket, family: socket.AddressFamily, sockets: Sockets) -> None:
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    if sockets.receive_buffer_bytes is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, sockets.receive_buffer_bytes)
    if sockets.send_buffer_bytes is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, sockets.send_buffer_bytes)
    stamp_arrivals(sock)


def address_text(name: tuple[str, int] | tuple[str, int, int, int]) -> str:
    """A socket name as ``host:port``, with brackets around IPv6."""
    host, port = name[0], name[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
