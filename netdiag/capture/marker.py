"""Packets of our own that prove a capture: one seen means that it is live; one sent last and seen means that all before it is in the file.

On loopback the marker goes to a socket of ours. Elsewhere it is a UDP datagram to the discard port (RFC 863) with a hop limit of 1: it
passes the interface, which is all that is needed, and ends at the first router.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from types import TracebackType
from typing import Self

from netdiag.capture.filter import Rule
from netdiag.capture.route import is_loopback

DISCARD_PORT = 9
_TOKEN_BYTES = 24


class Beacon:
    """Sends markers through one interface towards one address. A context manager."""

    def __init__(self, interface: str, address: str) -> None:
        """Raises ``OSError`` when the address has no route any more."""
        self.interface = interface
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._receiver = _bound(family, address) if is_loopback(interface) else None
        port = DISCARD_PORT if self._receiver is None else int(self._receiver.getsockname()[1])
        self.rule = Rule(port, address)
        """What the capture filter must let pass."""
        self._sender = socket.socket(family, socket.SOCK_DGRAM)
        self._sender.setblocking(False)
        _limit_hops(self._sender, family)

    def send(self, token: bytes) -> None:
        """One datagram. A network that refuses it is no error here: the marker is just not seen."""
        with contextlib.suppress(OSError):
            self._sender.sendto(token, (self.rule.host, self.rule.port))

    def close(self) -> None:
        """Close its sockets."""
        self._sender.close()
        if self._receiver is not None:
            self._receiver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def new_token() -> bytes:
    """Octets that stand nowhere else."""
    return b"netdiag marker " + secrets.token_hex(_TOKEN_BYTES // 2).encode("ascii")


class Watcher:
    """Looks for tokens in a growing capture file, reading each octet once. Works for any format that stores packets as they are."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._read_to = 0
        self._tail = b""
        self._found: set[bytes] = set()

    def skip_to_end(self) -> None:
        """What is in the file now holds no token that matters."""
        with contextlib.suppress(OSError):
            self._read_to, self._tail = os.path.getsize(self._path), b""

    def seen(self, tokens: set[bytes]) -> set[bytes]:
        """Those of the tokens that are in the file by now."""
        for chunk in self._new_octets():
            text = self._tail + chunk
            self._found |= {token for token in tokens if token in text}
            self._tail = text[-_LONGEST_TOKEN:]
        return tokens & self._found

    def _new_octets(self) -> list[bytes]:
        try:
            with open(self._path, "rb") as file:
                file.seek(self._read_to)
                chunks = list(iter(lambda: file.read(1 << 20), b""))
        except OSError:
            return []
        self._read_to += sum(map(len, chunks))
        return chunks


_LONGEST_TOKEN = 64


def _bound(family: socket.AddressFamily, address: str) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sock.bind((address, 0))
    except OSError:
        sock.close()
        raise
    return sock


def _limit_hops(sock: socket.socket, family: socket.AddressFamily) -> None:
    with contextlib.suppress(OSError):
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 1)
        else:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 1)
