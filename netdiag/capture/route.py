"""Through which interface packets to an address leave, asked of the kernel (rtnetlink) without sending anything."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

_NETLINK_ROUTE, _RTM_GETROUTE, _RTM_NEWROUTE, _NLM_F_REQUEST = 0, 26, 24, 1
_RTA_DST, _RTA_OIF = 1, 4
_NLMSG = struct.Struct("=IHHII")
_RTMSG = struct.Struct("=BBBBBBBBI")
_ATTRIBUTE = struct.Struct("=HH")

GLOBAL_ADDRESSES = ("1.1.1.1", "2606:4700:4700::1111")
"""Somewhere on the Internet, one per family: only for asking which way leads there. No packet is sent to them."""


def interface_to(address: str) -> str | None:
    """The name of the interface for an address; None when there is no route (or no way to ask)."""
    if sys.platform != "linux":
        return _interface_by_scapy(address)
    try:
        index = _output_index(address)
        return None if index is None else socket.if_indextoname(index)
    except OSError:
        return None


def name_servers(path: str = "/etc/resolv.conf") -> tuple[str, ...]:
    """Addresses of the resolvers that the system asks (resolv.conf(5)); empty where there is no such file."""
    try:
        lines = Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return ()
    words = (line.split() for line in lines)
    found = (w[1].partition("%")[0] for w in words if len(w) > 1 and w[0] == "nameserver")
    return tuple(a for a in found if _is_address(a))


def interfaces_to(addresses: Iterable[str]) -> dict[str, str]:
    """Interface name to the first of the addresses that is reached through it."""
    chosen: dict[str, str] = {}
    for address in addresses:
        name = interface_to(address)
        if name is not None:
            chosen.setdefault(name, address)
    return chosen


def loopback_name() -> str:
    """``lo`` on Linux, ``lo0`` on BSDs."""
    return "lo" if sys.platform == "linux" else "lo0"


def is_loopback(interface: str) -> bool:
    """Whether every packet of this interface passes twice, out and in (IFF_LOOPBACK)."""
    try:
        flags = int(Path(f"/sys/class/net/{os.path.basename(interface)}/flags").read_text(), 16)
    except (OSError, ValueError):
        return interface == loopback_name()
    return bool(flags & 0x8)


def _output_index(address: str) -> int | None:
    packed = ipaddress.ip_address(address).packed
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    destination = _ATTRIBUTE.pack(_ATTRIBUTE.size + len(packed), _RTA_DST) + packed
    question = _RTMSG.pack(family, len(packed) * 8, 0, 0, 0, 0, 0, 0, 0) + destination
    header = _NLMSG.pack(_NLMSG.size + len(question), _RTM_GETROUTE, _NLM_F_REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_ROUTE) as sock:
        sock.settimeout(1.0)
        sock.send(header + question)
        answer = sock.recv(65_536)
    return _read_output_index(answer)


def _read_output_index(answer: bytes) -> int | None:
    """RTA_OIF of the first route; None for an error answer (no route)."""
    length, kind, _flags, _sequence, _pid = _NLMSG.unpack_from(answer)
    if kind != _RTM_NEWROUTE:
        return None
    at, end = _NLMSG.size + _RTMSG.size, min(length, len(answer))
    while at + _ATTRIBUTE.size <= end:
        size, attribute = _ATTRIBUTE.unpack_from(answer, at)
        if attribute == _RTA_OIF and size >= 8:
            index: int = struct.unpack_from("=I", answer, at + 4)[0]
            return index
        at += max(_ATTRIBUTE.size, (size + 3) & ~3)
    return None


def _interface_by_scapy(address: str) -> str | None:
    """scapy reads the routing tables of macOS, the BSDs and Windows."""
    from scapy.config import conf

    try:
        table = conf.route6 if ":" in address else conf.route
        return str(table.route(address)[0])
    except Exception:  # scapy raises many kinds here; not knowing is an answer
        return None


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
