"""The capture filter: its text compiles, and our own BPF program decides as libpcap's does."""

from __future__ import annotations

import ctypes
import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator

import pytest

from netdiag.capture.filter import SNAP_BYTES, CaptureFilter, Rule, target_filter

FILTER = target_filter({443, 8443}, ("127.0.0.1", "::1"), (Rule(9, "127.0.0.1"),))


def test_rules_are_targets_then_dns_then_extras() -> None:
    assert FILTER.rules == (
        Rule(443, "127.0.0.1"),
        Rule(443, "::1"),
        Rule(8443, "127.0.0.1"),
        Rule(8443, "::1"),
        Rule(53),
        Rule(9, "127.0.0.1"),
    )


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="tcpdump is not installed")
def test_libpcap_accepts_the_text() -> None:
    done = subprocess.run(
        ["tcpdump", "-d", "-y", "EN10MB", FILTER.text()], check=False, capture_output=True, text=True, timeout=10
    )
    assert done.returncode == 0, done.stderr


def test_jumps_stay_inside_the_program() -> None:
    program = CaptureFilter(tuple(Rule(port, "2001:db8::1") for port in range(1, 60))).program(drop_outgoing=True)
    count = len(program) // 8
    assert count < 4096  # BPF_MAXINSNS
    for here in range(count):
        operation, yes, no, operand = struct.unpack_from("=HBBI", program, here * 8)
        reach = operand if operation == 0x05 else max(yes, no)
        assert here + 1 + reach < count or operation & 0x07 == 0x06


# The kernel runs the program for us, without any privilege: a filter may be attached to any socket, here to a datagram socket pair whose
# packets have no headers; so the decisions are tested on a UDP socket, whose filter sees the UDP header at 0 and IP through SKF_NET_OFF.


@pytest.fixture
def receiver() -> Iterator[socket.socket]:
    """A UDP socket on 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.settimeout(0.2)
        yield sock


def attach(sock: socket.socket, filter_: CaptureFilter, *, drop_outgoing: bool = False) -> None:
    """SO_ATTACH_FILTER."""
    program = filter_.program(drop_outgoing=drop_outgoing)
    octets = ctypes.create_string_buffer(program, len(program))
    sock.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HP", len(program) // 8, ctypes.addressof(octets)))


def arrives(sock: socket.socket, *, source_port: int = 0) -> bool:
    """Whether a datagram to the socket passes its filter."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind(("127.0.0.1", source_port))
        sender.sendto(b"x", sock.getsockname())
    try:
        return sock.recv(10) == b"x"
    except TimeoutError:
        return False


@pytest.mark.parametrize(
    ("rules", "passes"),
    [
        (lambda port: (Rule(port),), True),
        (lambda port: (Rule(port, "127.0.0.1"),), True),
        (lambda port: (Rule(1, "10.0.0.1"), Rule(port, "127.0.0.1")), True),
        (lambda port: (Rule(port, "10.0.0.1"),), False),
        (lambda port: (Rule(port, "::1"),), False),
        (lambda port: (Rule(port ^ 1),), False),
        (lambda port: (), False),
    ],
)
def test_the_kernel_decides_as_the_rules_say(receiver: socket.socket, rules: object, passes: bool) -> None:
    attach(receiver, CaptureFilter(rules(receiver.getsockname()[1])))  # type: ignore[operator]
    assert arrives(receiver) is passes


def test_source_port_counts_as_well(receiver: socket.socket) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    attach(receiver, CaptureFilter((Rule(port),)))
    assert arrives(receiver, source_port=port)
    assert not arrives(receiver)


def test_ipv6(receiver: socket.socket) -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as six:
        try:
            six.bind(("::1", 0))
        except OSError:
            pytest.skip("no IPv6 loopback here")
        six.settimeout(0.2)
        port = six.getsockname()[1]
        for filter_, passes in (
            (CaptureFilter((Rule(port, "::1"),)), True),
            (CaptureFilter((Rule(port, "fe80::1"),)), False),
            (CaptureFilter((Rule(port, "127.0.0.1"),)), False),
            (CaptureFilter((Rule(port),)), True),
        ):
            attach(six, filter_)
            with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sender:
                sender.sendto(b"x", ("::1", port))
            try:
                came = bool(six.recv(10))
            except TimeoutError:
                came = False
            assert came is passes, filter_


def test_accepts_whole_packets() -> None:
    program = FILTER.program(drop_outgoing=False)
    returns = {struct.unpack_from("=HBBI", program, i)[3] for i in range(0, len(program), 8) if program[i] == 0x06}
    assert returns == {0, SNAP_BYTES}
