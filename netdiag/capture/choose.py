"""Which backend, which interfaces, which filter: from what the user wants to what a ``LiveCapture`` needs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable

from netdiag.capture.dumpcap_backend import DumpcapBackend
from netdiag.capture.filter import DNS_PORT, HTTPS_PORT, CaptureFilter, Rule, target_filter
from netdiag.capture.live import Backend, CaptureFailed, LiveCapture, Task
from netdiag.capture.marker import Beacon
from netdiag.capture.pyshark_backend import PysharkBackend
from netdiag.capture.route import GLOBAL_ADDRESSES, interface_to, interfaces_to, name_servers
from netdiag.capture.scapy_backend import ScapyBackend
from netdiag.errors import ToolMissing, Unavailable, UsageError

_BACKENDS: dict[str, Callable[[], Backend]] = {
    "dumpcap": DumpcapBackend,
    "scapy": ScapyBackend,
    "pyshark": PysharkBackend,
}
AUTO = ("dumpcap", "scapy")
"""What ``auto`` tries, in this order. pyshark captures with dumpcap's rights, so it has nothing to add."""


def backend(name: str) -> Backend:
    """The backend of that name. Raises ``UsageError`` for an unknown one."""
    if name not in _BACKENDS:
        raise UsageError(f"no capture backend {name!r}; there are auto, {', '.join(_BACKENDS)}")
    return _BACKENDS[name]()


def start_first(name: str, make: Callable[[str], LiveCapture]) -> LiveCapture:
    """A running capture by the backend of that name, or by the first of ``AUTO`` that works. ``make`` prepares one for a backend's name.

    Raises the reason why none works: that of the first which is installed.
    """
    reasons: list[Unavailable] = []
    for candidate in AUTO if name == "auto" else (name,):
        try:
            capture = make(candidate)
            capture.start()
        except Unavailable as error:
            reasons.append(error)
        else:
            return capture
    raise next((reason for reason in reasons if not isinstance(reason, ToolMissing)), reasons[0])


def watched_interfaces(addresses: Iterable[str], *, forced: str | None = None) -> dict[str, str]:
    """Interface to an address that is reached through it: those of the targets; without any (names still to be resolved), those of
    the name servers and the ways to the Internet.

    Raises ``UsageError`` when there is none, or when the forced interface does not exist.
    """
    known = tuple(addresses)
    ways = interfaces_to(known or (*name_servers(), *GLOBAL_ADDRESSES))
    if forced is not None:
        return {forced: _address_through(forced, ways)}
    if not ways:
        raise UsageError("no interface has a route to the target")
    return ways


def live_capture(
    *,
    name: str,
    path: str,
    ports: set[int],
    hosts: tuple[str, ...] = (),
    also: tuple[Rule, ...] = (),
    interface: str | None = None,
) -> LiveCapture:
    """A capture, not yet started, of the target's ports (narrowed to ``hosts`` when they are known), DNS, ICMP, ``also`` and our markers.

    Raises ``UsageError`` or ``CaptureFailed``.
    """
    hops = [rule.host for rule in also if rule.host is not None]
    ways = watched_interfaces((*hosts, *hops) if hosts else (), forced=interface)
    if interface is None:
        ways = interfaces_to(hops) | ways
    return _prepared(name, path, ways, target_filter(ports, hosts, also))


def wide_capture(*, name: str, path: str, interface: str | None = None) -> LiveCapture:
    """A capture, not yet started, of all TCP, DNS, QUIC and ICMP, on the ways to the Internet and on loopback. Raises as ``live_capture``."""
    ways = watched_interfaces((), forced=interface)
    if interface is None:
        ways |= interfaces_to(("127.0.0.1",))
    filter_ = CaptureFilter((Rule(HTTPS_PORT), Rule(DNS_PORT)), all_tcp=True)
    return _prepared(name, path, ways, filter_)


def _prepared(name: str, path: str, ways: dict[str, str], filter_: CaptureFilter) -> LiveCapture:
    beacons = _beacons(ways)
    try:
        rules = tuple(dict.fromkeys((*filter_.rules, *(beacon.rule for beacon in beacons))))
        task = Task(path=path, interfaces=tuple(ways), filter=CaptureFilter(rules, filter_.all_tcp))
        return LiveCapture(backend(name), task, beacons)
    except BaseException:
        for beacon in beacons:
            beacon.close()
        raise


def _beacons(ways: dict[str, str]) -> list[Beacon]:
    made: list[Beacon] = []
    try:
        made.extend(Beacon(interface, address) for interface, address in ways.items())
    except OSError as error:
        for beacon in made:
            beacon.close()
        raise CaptureFailed(f"no way to prove a capture: {error.strerror}") from error
    return made


def _address_through(interface: str, ways: dict[str, str]) -> str:
    """Some address for a marker. Without one, the capture could not be proved."""
    if interface in ways:
        return ways[interface]
    with contextlib.suppress(OSError):
        for address in (*GLOBAL_ADDRESSES, "127.0.0.1", "::1", *_local_hosts()):
            if interface_to(address) == interface:
                return address
    raise UsageError(f"interface {interface!r} does not exist, or leads nowhere that could prove a capture")


def _local_hosts() -> list[str]:
    """Gateways and neighbours that the kernel knows (/proc/net/arp): an interface without a default route may have some."""
    if not os.path.exists("/proc/net/arp"):
        return []
    with open("/proc/net/arp", encoding="ascii", errors="replace") as table:
        return [line.split()[0] for line in table.readlines()[1:] if line.strip()]
