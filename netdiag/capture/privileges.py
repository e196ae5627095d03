"""May we capture here, with what, and if not: what would make it possible on this system.

Asked of the tools themselves: ``dumpcap -d`` opens the interface and compiles the filter, and fails just as a capture would (``-D`` only
lists). Nothing is captured.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from netdiag.capture.dumpcap_backend import failure
from netdiag.capture.filter import CaptureFilter
from netdiag.capture.route import loopback_name
from netdiag.errors import PrivilegeMissing, Unavailable

_Check = Callable[[], None]
_LOOK_S = 10.0
_FIRST_INSTRUCTION = "(000)"
"""Of the BPF program that ``dumpcap -d`` prints once it has opened the interface."""
_VERSION = re.compile(r"(\d+\.\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """One way to capture, and whether it is open to us."""

    name: str
    """``dumpcap``, ``scapy``, ``pyshark``."""
    installed: bool
    version: str | None
    allowed: bool
    """Installed, and the system lets us capture with it."""
    reason: str | None
    """Why not; None when it is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureAbility:
    """What ``netdiag doctor`` says about capturing."""

    system: str
    """``Linux 6.1.0``."""
    user: str
    interface: str
    """What was tried."""
    recorders: tuple[Recorder, ...]
    """In the order in which ``auto`` tries them."""
    in_container: bool
    groups: tuple[str, ...]
    """Names of our groups that give rights to capture (wireshark, access_bpf …)."""
    advice: tuple[str, ...]
    """Lines that say how to get packets; empty when we may already."""

    @property
    def allowed(self) -> bool:
        """Whether any recorder may capture."""
        return any(recorder.allowed for recorder in self.recorders)

    @property
    def best(self) -> str | None:
        """The recorder that ``auto`` takes; None when there is none."""
        return next((recorder.name for recorder in self.recorders if recorder.allowed), None)

    @property
    def note(self) -> str | None:
        """One line for a result without packets; None when packets can be had."""
        if self.allowed:
            return None
        return f"no packets: {self.recorders[0].reason}; {self.advice[0]}" if self.advice else "no packets"


def ability(interface: str | None = None, filter_: CaptureFilter | None = None) -> CaptureAbility:
    """Ask every recorder. Takes about 0.1 s, captures nothing, raises nothing."""
    wanted = interface or loopback_name()
    dumpcap, scapy = _dumpcap(wanted, filter_), _scapy()
    recorders = (dumpcap, scapy, _pyshark(dumpcap))
    contained = in_container()
    allowed = any(recorder.allowed for recorder in recorders)
    return CaptureAbility(
        system=f"{os.uname().sysname} {os.uname().release}" if hasattr(os, "uname") else sys.platform,
        user=_user(),
        interface=wanted,
        recorders=recorders,
        in_container=contained,
        groups=_groups(),
        advice=() if allowed else advice(contained=contained, dumpcap_installed=dumpcap.installed),
    )


def check_dumpcap(interfaces: Sequence[str], filter_: CaptureFilter | None = None) -> None:
    """Raise ``PrivilegeMissing``, ``ToolMissing`` or ``CaptureFailed`` if dumpcap would."""
    path = shutil.which("dumpcap")
    if path is None:
        from netdiag.errors import ToolMissing

        raise ToolMissing("dumpcap is not installed")
    command = [path, "-d"]
    for interface in interfaces:
        command += ["-i", interface, *(() if filter_ is None else ("-f", filter_.text()))]
    done = _run(command)
    if done is None or _FIRST_INSTRUCTION not in done.stdout:  # some versions fail with exit code 0
        raise failure([] if done is None else (done.stderr + done.stdout).splitlines())


def check_packet_socket() -> None:
    """Raise ``PrivilegeMissing`` or ``ToolMissing`` if a packet socket cannot be had."""
    from netdiag.errors import ToolMissing

    family = getattr(socket, "AF_PACKET", None)
    if family is None:
        raise ToolMissing("this system has no packet sockets")
    try:
        socket.socket(family, socket.SOCK_RAW, 0).close()
    except PermissionError as error:
        raise PrivilegeMissing("no permission to open a packet socket (CAP_NET_RAW)") from error
    except OSError as error:
        raise Unavailable(f"no packet socket: {error.strerror}") from error


def advice(*, contained: bool, dumpcap_installed: bool) -> tuple[str, ...]:
    """How to get the right to capture, most fitting first."""
    if contained:
        return ("start the container with --cap-add NET_RAW --cap-add NET_ADMIN", *_linux_advice(dumpcap_installed))
    if sys.platform == "darwin":
        return ("install Wireshark's ChmodBPF (it gives group access_bpf the right to /dev/bpf*) and log in again",)
    if sys.platform == "win32":
        return ("install Npcap without the restriction to administrators; loopback is 'Npcap Loopback Adapter'",)
    return _linux_advice(dumpcap_installed)


def _linux_advice(dumpcap_installed: bool) -> tuple[str, ...]:
    """Never setcap on python (every script would gain the right), and not sudo first (results would become root's)."""
    install = () if dumpcap_installed else ("install dumpcap (Debian, Ubuntu: sudo apt install wireshark-common)",)
    debian = (
        "Debian, Ubuntu: sudo dpkg-reconfigure wireshark-common (answer Yes); sudo usermod -aG wireshark $USER; log in again",
    )
    other = ('elsewhere: sudo setcap cap_net_raw,cap_net_admin=ep "$(command -v dumpcap)"',)
    return (*install, *debian, *other) if Path("/etc/debian_version").exists() else (*install, *other, *debian)


def in_container() -> bool:
    """Whether this looks like a container, where rights are given from outside."""
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return True
    with contextlib.suppress(OSError):
        return any(word in Path("/proc/1/cgroup").read_text() for word in ("docker", "kubepods", "lxc", "containerd"))
    return False


def _dumpcap(interface: str, filter_: CaptureFilter | None) -> Recorder:
    return _recorder("dumpcap", _tool_version("dumpcap"), lambda: check_dumpcap([interface], filter_))


def _scapy() -> Recorder:
    return _recorder("scapy", _package_version("scapy"), check_packet_socket)


def _pyshark(dumpcap: Recorder) -> Recorder:
    """pyshark captures through tshark and dumpcap, so dumpcap's rights are its own."""
    version = _package_version("pyshark")
    has_tshark = shutil.which("tshark") is not None
    reason = None if version else "pyshark is not installed"
    reason = reason or (None if has_tshark else "tshark is not installed") or dumpcap.reason
    return Recorder(
        name="pyshark",
        installed=version is not None and has_tshark,
        version=version,
        allowed=reason is None,
        reason=reason,
    )


def _recorder(name: str, version: str | None, check: _Check) -> Recorder:
    try:
        check()
        reason = None if version else f"{name} is not installed"
    except Unavailable as error:
        reason = error.message
    return Recorder(name=name, installed=version is not None, version=version, allowed=reason is None, reason=reason)


def _tool_version(name: str) -> str | None:
    """None when it is not installed."""
    path = shutil.which(name)
    done = None if path is None else _run([path, "--version"])
    if done is None:
        return None
    found = _VERSION.search(done.stdout)
    return found[1] if found else "unknown"


def _package_version(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _run(command: list[str]) -> subprocess.CompletedProcess[str] | None:
    environment = {k: v for k, v in os.environ.items() if k != "SSLKEYLOGFILE"} | {"LC_ALL": "C"}
    try:
        return subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LOOK_S,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid()) if hasattr(os, "getuid") else "unknown"


_CAPTURE_GROUPS = frozenset({"wireshark", "pcap", "access_bpf", "netdev"})


def _groups() -> tuple[str, ...]:
    if not hasattr(os, "getgroups"):
        return ()
    import grp

    names = set()
    for number in os.getgroups():
        with contextlib.suppress(KeyError):
            names.add(grp.getgrgid(number).gr_name)
    return tuple(sorted(names & _CAPTURE_GROUPS))
