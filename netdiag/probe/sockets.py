"""Which TCP connections a running process (and its children) has: read from /proc while it runs, since nothing tells afterwards."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import struct
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from netdiag.records.endpoint import Endpoint

Pair = tuple[Endpoint, Endpoint]
"""(local, remote)."""

_EVERY_S = 0.005
_LISTEN = "0A"


class SocketWatch:
    """Looks every 5 ms at the sockets of a process tree. A connection that lives shorter than that may be missed. Linux only."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._seen: set[Pair] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="netdiag-sockets", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def pairs(self) -> frozenset[Pair]:
        """Every connection seen so far."""
        return frozenset(self._seen)

    def _watch(self) -> None:
        while not self._stop.wait(_EVERY_S):
            self._seen |= connections_of(self._pid)


def connections_of(pid: int) -> set[Pair]:
    """The TCP connections that a process and its descendants have now."""
    family = list(descendants(pid))
    inodes = {inode for member in family for inode in _socket_inodes(member)}
    if not inodes:
        return set()
    return {pair for table in ("tcp", "tcp6") for pair, inode in _table(pid, table) if inode in inodes}


def descendants(pid: int) -> Iterator[int]:
    """The process and all below it."""
    yield pid
    for task in _listed(f"/proc/{pid}/task"):
        for child in _read(f"/proc/{pid}/task/{task}/children").split():
            yield from descendants(int(child))


def _socket_inodes(pid: int) -> Iterator[str]:
    for descriptor in _listed(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):  # closed meanwhile
            target = os.readlink(f"/proc/{pid}/fd/{descriptor}")
            if target.startswith("socket:["):
                yield target[8:-1]


def _listed(folder: str) -> list[str]:
    """Names in a folder of /proc; none where the process is gone or another user's."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _table(pid: int, name: str) -> Iterator[tuple[Pair, str]]:
    """Rows of /proc/PID/net/tcp (of the process's own network namespace) that are no listeners."""
    for line in _read(f"/proc/{pid}/net/{name}").splitlines()[1:]:
        words = line.split()
        if len(words) > 9 and words[3] != _LISTEN:
            yield (_endpoint(words[1]), _endpoint(words[2])), words[9]


def _endpoint(text: str) -> Endpoint:
    """``0100007F:01BB``: words in the machine's byte order."""
    address, _, port = text.partition(":")
    words = [int(address[i : i + 8], 16) for i in range(0, len(address), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    parsed = ipaddress.ip_address(packed)
    mapped = getattr(parsed, "ipv4_mapped", None)
    return Endpoint(address=str(mapped or parsed), port=int(port, 16))


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def available() -> bool:
    """Whether this system tells."""
    return os.path.isdir("/proc/self/fd") and hasattr(socket, "AF_PACKET")
