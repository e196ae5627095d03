"""SO_TIMESTAMPING and TCP_INFO on a loopback connection."""

from __future__ import annotations

import select
import socket
import sys
import time
from collections.abc import Iterator

import pytest

from netdiag.probe import kernel

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernel stamps are Linux only")


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A stamped client socket and its peer."""
    with (
        kernel.stamping(),
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        peer, _ = server.accept()
        with peer:
            assert kernel.enable(client)
            yield client, peer


def test_receive_stamp_lies_between_send_and_read(pair: tuple[socket.socket, socket.socket]) -> None:
    client, peer = pair
    before = time.time_ns()
    peer.send(b"hello")
    select.select([client], [], [], 1)
    data, stamp = kernel.receive(client, 100, stamped=True)
    after = time.time_ns()
    assert data == b"hello"
    assert stamp is not None
    assert before < stamp < after


def test_transmit_stamps_name_the_last_octet(pair: tuple[socket.socket, socket.socket]) -> None:
    client, peer = pair
    before = time.time_ns()
    client.send(b"x" * 10)
    client.send(b"y" * 5)
    peer.recv(100)
    time.sleep(0.05)
    stamps = kernel.drain(client)
    assert {(s.octet, s.kind) for s in stamps} >= {(9, "sent"), (14, "sent"), (14, "acknowledged")}
    assert all(before < s.at < time.time_ns() for s in stamps)
    assert kernel.drain(client) == []


def test_without_stamps_reading_still_works(pair: tuple[socket.socket, socket.socket]) -> None:
    client, peer = pair
    peer.send(b"plain")
    select.select([client], [], [], 1)
    assert kernel.receive(client, 100, stamped=False) == (b"plain", None)


def test_tcp_info_has_every_field_here(pair: tuple[socket.socket, socket.socket]) -> None:
    client, peer = pair
    client.send(b"x")
    peer.recv(1)
    time.sleep(0.05)
    info = kernel.tcp_info(client)
    assert info is not None
    assert info.rtt_ns
    assert info.min_rtt_ns is not None
    assert 0 < info.min_rtt_ns <= info.rtt_ns * 2
    assert info.total_retransmissions == 0
    assert info.snd_mss_bytes
    assert info.congestion_control


def test_a_short_structure_gives_none_not_zero() -> None:
    assert kernel._field(b"\0" * 104, 148, "I") is None
    assert kernel._field(b"\0" * 104, 100, "I") == 0


def test_availability_is_known() -> None:
    assert kernel.available()
