"""The process behind ``scapy_backend``: packets from scapy's listening sockets into a pcapng file until standard input ends.

Says one JSON object a line: ``{"state": "ready"}``, at the end ``{"state": "done", "received": …, "dropped": …}``; or why it cannot.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from netdiag.capture.filter import SNAP_BYTES
from netdiag.capture.writer import PcapngWriter
from netdiag.wire.tables import Interface

# asm-generic/socket.h, linux/if_packet.h
_SO_ATTACH_FILTER, _SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 26, 33, 35
_SOL_PACKET, _PACKET_STATISTICS = 263, 6
_TIMESPEC = struct.Struct("=qq")
_BATCH = 512
"""Packets taken from one socket before the others get their turn."""

_LINK_TYPES = {1: 1, 772: 1, 65534: 101, 512: 101, 768: 101, 769: 101, 776: 101, 778: 101, 823: 101}
"""ARPHRD_ (linux/if_arp.h) to LINKTYPE_: Ethernet and loopback as Ethernet; tunnels without a link header as raw IP."""


class Unfit(Exception):
    """The capture cannot start."""

    def __init__(self, state: str, reason: str) -> None:
        super().__init__(reason)
        self.state = state


@dataclass(slots=True)
class Tap:
    """One interface's socket."""

    index: int
    scapy_socket: Any
    link_type: int
    dropped: int = 0
    received: int = 0
    buffer: bytearray = field(default_factory=lambda: bytearray(SNAP_BYTES))

    @property
    def socket(self) -> socket.socket:
        """The AF_PACKET socket that scapy opened."""
        raw: socket.socket = self.scapy_socket.ins
        return raw

    def pump(self, writer: PcapngWriter) -> None:
        """Move what waits in the socket to the file."""
        for _ in range(_BATCH):
            try:
                size, ancillary, _flags, _address = self.socket.recvmsg_into(
                    [self.buffer], 256, socket.MSG_DONTWAIT | socket.MSG_TRUNC
                )
            except (BlockingIOError, InterruptedError):
                return
            except OSError:  # the interface went away; what was captured stays
                return
            data = bytes(memoryview(self.buffer)[: min(size, SNAP_BYTES)])
            writer.packet(data, _stamp(ancillary), interface=self.index, original_bytes=size)

    def take_statistics(self) -> None:
        """struct tpacket_stats {packets, drops}: the kernel resets it with every look. Its packets include the dropped ones."""
        packets, drops = struct.unpack("=II", self.socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))
        self.received += packets - drops
        self.dropped += drops


def main(argument: str) -> int:
    """The process's exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to end
    task = json.loads(argument)
    taps: list[Tap] = []
    try:
        for place, wanted in enumerate(task["interfaces"]):
            taps.append(_open(place, wanted["name"], bytes.fromhex(wanted["filter"]), task["buffer_bytes"]))
        with open(os.open(task["path"], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", 1 << 16) as file:
            _record(taps, [wanted["name"] for wanted in task["interfaces"]], file)
    except Unfit as error:
        _say({"state": error.state, "reason": str(error)})
        return 1
    except OSError as error:
        _say({"state": "failed", "reason": f"cannot write the capture: {error.strerror}"})
        return 1
    finally:
        for tap in taps:
            tap.scapy_socket.close()
    return 0


def _record(taps: list[Tap], names: list[str], file: BinaryIO) -> None:
    interfaces = [
        Interface(link_type=tap.link_type, snap_bytes=SNAP_BYTES, ticks_per_second=1_000_000_000, name=name)
        for tap, name in zip(taps, names, strict=True)
    ]
    writer = PcapngWriter(file, interfaces=interfaces)
    file.flush()
    _say({"state": "ready"})
    by_descriptor = {tap.socket.fileno(): tap for tap in taps}
    while True:
        ready, _, _ = select.select([0, *by_descriptor], [], [])
        for descriptor in ready:
            if descriptor in by_descriptor:
                by_descriptor[descriptor].pump(writer)
        file.flush()
        if 0 in ready and not os.read(0, 4096):
            break
    _finish(taps, writer)


def _finish(taps: list[Tap], writer: PcapngWriter) -> None:
    """What still waits, then the counts."""
    for tap in taps:
        tap.pump(writer)
        tap.take_statistics()
        writer.statistics(tap.received, tap.dropped, interface=tap.index, at_ns=time.time_ns())
    writer.close()
    received, dropped = sum(tap.received for tap in taps), sum(tap.dropped for tap in taps)
    _say({"state": "done", "received": received, "dropped": dropped})


def _open(place: int, name: str, program: bytes, buffer_bytes: int) -> Tap:
    try:
        from scapy.arch.linux import L2ListenSocket
    except ImportError as error:
        raise Unfit("missing", "scapy is not installed") from error
    try:
        listening = L2ListenSocket(iface=name, promisc=False, nofilter=1)
    except PermissionError as error:
        raise Unfit("forbidden", f"no permission to capture on {name}") from error
    except (OSError, ValueError) as error:
        raise Unfit("failed", f"cannot capture on {name}: {error}") from error
    hardware = listening.ins.getsockname()[3]
    if hardware not in _LINK_TYPES:
        listening.close()
        raise Unfit("failed", f"{name} has a link layer that is not known here (ARPHRD {hardware})")
    tap = Tap(place, listening, _LINK_TYPES[hardware])
    _prepare(tap.socket, program, buffer_bytes)
    return tap


def _prepare(sock: socket.socket, program: bytes, buffer_bytes: int) -> None:
    """Filter, large buffer, and nothing left of what came before the filter."""
    instructions = ctypes.create_string_buffer(program, len(program))
    fprog = struct.pack("HP", len(program) // 8, ctypes.addressof(instructions))  # struct sock_fprog, native padding
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, fprog)
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, buffer_bytes)
    except OSError:  # needs CAP_NET_ADMIN; then as much as net.core.rmem_max allows
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    sock.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            sock.recv(64)
    sock.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)


def _stamp(ancillary: list[tuple[int, int, bytes]]) -> int:
    """The kernel's receive stamp, in nanoseconds (scapy's own reader makes it a float, which has steps of 238 ns)."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(data) >= _TIMESPEC.size:
            seconds, nanoseconds = _TIMESPEC.unpack_from(data)
            return int(seconds * 1_000_000_000 + nanoseconds)
    raise OSError(0, "the kernel gave no time stamp")


def _say(what: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
