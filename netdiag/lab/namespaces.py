"""Network namespaces that vanish with the process that made them.

A namespace is held by a descriptor of ours and by the processes inside, and by nothing else: no name under /run, so that even a killed lab
leaves nothing behind. Entering is per thread (setns(2)), hence every entry runs in a thread of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, TypeVar

from netdiag.errors import PrivilegeMissing, ToolMissing

T = TypeVar("T")

CLIENT_IPV4, SERVER_IPV4 = "192.0.2.2", "192.0.2.1"
CLIENT_IPV6, SERVER_IPV6 = "2001:db8::2", "2001:db8::1"
"""Documentation addresses (RFC 5737, RFC 3849): they exist only inside."""

_CLONE_NEWNET = 0x40000000
_SIOCETHTOOL = 0x8946
_OFFLOADS = {"rx": 0x15, "tx": 0x17, "sg": 0x19, "tso": 0x1F, "gso": 0x24, "gro": 0x2C}
"""linux/ethtool.h: the commands that switch an offload. With them on, the link would see 64 KB frames with unfinished checksums."""


def why_not() -> str | None:
    """The reason why namespaces cannot be made here, or None when they can."""
    if not sys.platform.startswith("linux"):
        return "network namespaces need Linux"
    try:
        with Namespace.create():
            return None
    except (PrivilegeMissing, ToolMissing) as error:
        return error.message


class Namespace:
    """One network namespace; a context manager that lets go of it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def create(cls) -> Namespace:
        """A new, empty namespace with its loopback up. Raises ``PrivilegeMissing`` where the kernel does not allow it, ``ToolMissing``
        without iproute2."""
        namespace = cls(_in_thread(_unshare))
        try:
            namespace.ip("link", "set", "lo", "up")
        except BaseException:
            namespace.close()
            raise
        return namespace

    def close(self) -> None:
        """Let go; the kernel removes the namespace when the last process inside has ended."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Namespace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> str:
        """A name by which ``ip link set … netns`` finds it, as long as this process lives."""
        return f"/proc/{os.getpid()}/fd/{self._descriptor}"

    def call(self, function: Callable[[], T]) -> T:
        """Run a function inside, in a thread of its own. Sockets it makes and processes it starts stay inside."""

        def inside() -> T:
            _setns(self._descriptor)
            return function()

        return _in_thread(inside)

    def ip(self, *arguments: str) -> str:
        """Run iproute2's ``ip`` inside."""
        return self.call(lambda: _run("ip", *arguments))

    def start(self, command: Sequence[str], *, resolver: str | None = None, **options: Any) -> subprocess.Popen[bytes]:
        """Start a process inside. It ends with us. With ``resolver`` its /etc/resolv.conf is that file."""
        wrapper = [
            sys.executable,
            "-m",
            "netdiag.lab.inside",
            *(["--resolver", resolver] if resolver else []),
            "--",
            *command,
        ]
        return self.call(lambda: subprocess.Popen(wrapper, **options))


@dataclass(frozen=True, slots=True)
class Topology:
    """client — link — server; the link is a namespace of its own with one end of each pair."""

    client: Namespace
    link: Namespace
    server: Namespace


@contextlib.contextmanager
def topology(*, mtu_bytes: int = 1500) -> Iterator[Topology]:
    """Client and server, each with an interface ``eth0``, whose other ends (``c``, ``s``) lie in the link's namespace."""
    with Namespace.create() as client, Namespace.create() as link, Namespace.create() as server:
        _wire(link, "c", client, mtu_bytes)
        _wire(link, "s", server, mtu_bytes)
        addresses = ((client, CLIENT_IPV4, CLIENT_IPV6), (server, SERVER_IPV4, SERVER_IPV6))
        for namespace, ipv4, ipv6 in addresses:
            namespace.ip("addr", "add", f"{ipv4}/24", "dev", "eth0")
            namespace.ip("addr", "add", f"{ipv6}/64", "dev", "eth0", "nodad")
        _introduce(client, server, SERVER_IPV4, SERVER_IPV6)
        _introduce(server, client, CLIENT_IPV4, CLIENT_IPV6)
        yield Topology(client, link, server)


def _wire(link: Namespace, name: str, host: Namespace, mtu_bytes: int) -> None:
    link.ip(
        "link",
        "add",
        name,
        "mtu",
        str(mtu_bytes),
        "type",
        "veth",
        "peer",
        "name",
        "eth0",
        "mtu",
        str(mtu_bytes),
        "netns",
        host.path,
    )
    for namespace, interface in ((link, name), (host, "eth0")):
        namespace.call(lambda interface=interface: offloads_off(interface))  # type: ignore[misc]
        namespace.ip("link", "set", interface, "up")
    with contextlib.suppress(OSError):
        link.call(lambda: FilePath(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1"))


def _introduce(host: Namespace, peer: Namespace, *addresses: str) -> None:
    """Static neighbours: otherwise ARP pays the path's delay on the first packet."""
    station = peer.call(lambda: _hardware_address("eth0"))
    for address in addresses:
        host.ip("neigh", "replace", address, "lladdr", station, "dev", "eth0", "nud", "permanent")


def _hardware_address(interface: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        answer = fcntl.ioctl(control, 0x8927, struct.pack("256s", interface.encode()))  # SIOCGIFHWADDR
    return ":".join(f"{octet:02x}" for octet in answer[18:24])


def offloads_off(interface: str) -> None:
    """Switch every offload off that this interface knows."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in _OFFLOADS.values():
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            request = struct.pack("16sP", interface.encode(), ctypes.addressof(value))
            with contextlib.suppress(OSError):
                fcntl.ioctl(control, _SIOCETHTOOL, request)


def _unshare() -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET):
        raise PrivilegeMissing(
            f"no right to make network namespaces ({os.strerror(ctypes.get_errno())})",
            advice="run as root, or inside `unshare -Urnm` where the kernel allows user namespaces",
        )
    return os.open(f"/proc/self/task/{threading.get_native_id()}/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _setns(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET):
        raise PrivilegeMissing(f"cannot enter a network namespace ({os.strerror(ctypes.get_errno())})")


def _run(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise ToolMissing(f"{command[0]} is not installed", advice="install iproute2") from error
    if done.returncode:
        raise PrivilegeMissing(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def _in_thread(function: Callable[[], T]) -> T:
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(function())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, name="namespace")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
