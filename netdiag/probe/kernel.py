"""What the Linux kernel says about one TCP socket, without any privilege: SO_TIMESTAMPING stamps and TCP_INFO.

Receive stamps equal those of a packet capture on the same interface; transmit stamps differ by a few µs. Elsewhere than on Linux, or on a
kernel too old, everything here answers None and the probe goes on with the application's clock.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from netdiag.records.tcp_info import TcpInfo

# linux/net_tstamp.h
_SO_TIMESTAMPING = 37
_TX_SOFTWARE, _RX_SOFTWARE, _SOFTWARE = 1 << 1, 1 << 3, 1 << 4
_OPT_ID, _TX_SCHED, _TX_ACK, _OPT_TSONLY = 1 << 7, 1 << 8, 1 << 9, 1 << 11
_OPT_ID_TCP = 1 << 16
"""Since Linux 6.2: counts octets from those written after the option was set, whatever is still in flight."""
_FLAGS = _TX_SOFTWARE | _RX_SOFTWARE | _SOFTWARE | _OPT_ID | _TX_SCHED | _TX_ACK | _OPT_TSONLY

# linux/errqueue.h: struct sock_extended_err {u32 errno; u8 origin, type, code, pad; u32 info, data}
_EXTENDED_ERROR = struct.Struct("=IBBBBII")
_ORIGIN_TIMESTAMPING = 4
_TIMESPEC = struct.Struct("=qq")
_IP_RECVERR, _IPV6_RECVERR = 11, 25
_ANCILLARY_BYTES = 512
_MOST_STAMPS = 100_000

_TCP_INFO = 11


@dataclass(frozen=True, slots=True)
class TransmitStamp:
    """One transmit event of a write: ``octet`` is the position of its last octet, from the first one written after ``enable``."""

    octet: int
    kind: str
    """``sched`` (entered the packet scheduler), ``sent`` (handed to the device), ``acknowledged``."""
    at: int


_KINDS = {0: "sent", 1: "sched", 2: "acknowledged"}


def enable(sock: socket.socket) -> bool:
    """Ask for stamps on a connected socket. False where the kernel has none."""
    if sys.platform != "linux":
        return False
    for flags in (_FLAGS | _OPT_ID_TCP, _FLAGS):
        try:
            sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, flags)
        except OSError:
            continue
        return True
    return False


def available() -> bool:
    """Whether this system's TCP sockets can be asked for stamps."""
    if sys.platform != "linux":
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        try:  # without OPT_ID, which only a connected socket accepts
            sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, _FLAGS & ~_OPT_ID)
        except OSError:
            return False
    return True


@contextmanager
def stamping() -> Iterator[None]:
    """Keep the system's receive stamps switched on. The kernel stamps packets only while some socket wants it, and begins with a delay, so
    that the first packets of the first such socket would come without.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        if sys.platform == "linux":
            with suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, _RX_SOFTWARE | _SOFTWARE)
                time.sleep(_SWITCH_ON_S)
        yield


_SWITCH_ON_S = 0.01


def receive(sock: socket.socket, max_bytes: int, *, stamped: bool) -> tuple[bytes, int | None]:
    """One read and the receive stamp of its last segment (None without stamps). Raises as ``socket.recv``."""
    if not stamped:
        return sock.recv(max_bytes), None
    data, ancillary, _flags, _address = sock.recvmsg(max_bytes, _ANCILLARY_BYTES)
    return data, _software_stamp(ancillary)


def drain(sock: socket.socket) -> list[TransmitStamp]:
    """Take all queued transmit stamps. Must happen before anyone polls the socket: a waiting stamp raises POLLERR."""
    stamps: list[TransmitStamp] = []
    for _ in range(_MOST_STAMPS):
        try:
            _data, ancillary, _flags, _address = sock.recvmsg(
                0, _ANCILLARY_BYTES, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT
            )
        except OSError:  # mostly EAGAIN: the queue is empty
            break
        if (stamp := _transmit_stamp(ancillary)) is not None:
            stamps.append(stamp)
    return stamps


def tcp_info(sock: socket.socket) -> TcpInfo | None:
    """``TCP_INFO`` now; None where there is none. Fields that this kernel's structure does not reach are None."""
    if sys.platform != "linux":
        return None
    try:
        raw = sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, 512)
    except OSError:
        return None
    return TcpInfo(
        rtt_ns=_microseconds(_field(raw, 68, "I")),
        min_rtt_ns=_min_rtt(raw),
        total_retransmissions=_field(raw, 100, "I"),
        received_out_of_order=_field(raw, 224, "I"),
        delivery_rate_bytes_per_s=_field(raw, 160, "Q"),
        busy_ns=_microseconds(_field(raw, 168, "Q")),
        receive_window_limited_ns=_microseconds(_field(raw, 176, "Q")),
        send_buffer_limited_ns=_microseconds(_field(raw, 184, "Q")),
        snd_mss_bytes=_field(raw, 16, "I"),
        congestion_control=_congestion_control(sock),
    )


_NO_MIN_RTT_US = 0xFFFFFFFF
"""The kernel's word for "no sample yet"."""


def _min_rtt(raw: bytes) -> int | None:
    value = _field(raw, 148, "I")
    return None if value == _NO_MIN_RTT_US else _microseconds(value)


def _congestion_control(sock: socket.socket) -> str | None:
    try:
        return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode("ascii") or None
    except (OSError, AttributeError, UnicodeDecodeError):
        return None


def _field(raw: bytes, offset: int, code: str) -> int | None:
    """A member of struct tcp_info (linux/tcp.h), which only ever grows at its end."""
    if offset + struct.calcsize("=" + code) > len(raw):
        return None
    value: int = struct.unpack_from("=" + code, raw, offset)[0]
    return value


def _microseconds(value: int | None) -> int | None:
    return None if value is None else value * 1_000


def _software_stamp(ancillary: list[tuple[int, int, bytes]]) -> int | None:
    """struct scm_timestamping: three timespecs, the first is the software stamp."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPING and len(data) >= _TIMESPEC.size:
            seconds, nanoseconds = _TIMESPEC.unpack_from(data)
            return seconds * 1_000_000_000 + nanoseconds or None
    return None


def _transmit_stamp(ancillary: list[tuple[int, int, bytes]]) -> TransmitStamp | None:
    at = _software_stamp(ancillary)
    for level, kind, data in ancillary:
        is_error = (level, kind) in ((socket.IPPROTO_IP, _IP_RECVERR), (socket.IPPROTO_IPV6, _IPV6_RECVERR))
        if at is None or not is_error or len(data) < _EXTENDED_ERROR.size:
            continue
        _errno, origin, _type, _code, _pad, info, octet = _EXTENDED_ERROR.unpack_from(data)
        if origin == _ORIGIN_TIMESTAMPING and info in _KINDS:
            return TransmitStamp(octet, _KINDS[info], at)
    return None
