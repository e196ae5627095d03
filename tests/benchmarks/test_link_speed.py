"""How much the emulated path carries and how exactly it delays; prints the figures, and asserts only far from them."""

from __future__ import annotations

import socket
import statistics
import threading
import time
from pathlib import Path as FilePath

import pytest

from netdiag.lab import namespaces
from netdiag.lab.namespaces import SERVER_IPV4, Topology
from tests.support.link_process import link
from tests.support.testbed import needs_namespaces

pytestmark = [
    pytest.mark.benchmark,
    *needs_namespaces,
]
MEGABYTES = 60
PORT = 8080


def bulk_mbit(top: Topology) -> float:
    """TCP from server to client."""
    listener = top.server.call(lambda: socket.create_server((SERVER_IPV4, PORT)))
    client = top.client.call(lambda: socket.socket())
    with listener, client:
        client.connect((SERVER_IPV4, PORT))
        accepted, _ = listener.accept()
        chunk = bytes(1 << 20)

        def serve() -> None:
            with accepted:
                for _ in range(MEGABYTES):
                    accepted.sendall(chunk)

        writer = threading.Thread(target=serve)
        started, received = time.monotonic(), 0
        writer.start()
        while data := client.recv(1 << 18):
            received += len(data)
        took = time.monotonic() - started
        writer.join()
    assert received == MEGABYTES << 20
    return received * 8 / took / 1e6


def test_throughput_at_mtu_1500(tmp_path: FilePath) -> None:
    rates = {}
    for rtt_ms in (0, 20):
        with namespaces.topology() as top, link(top, tmp_path, rtt_ms=rtt_ms) as rows:
            rates[rtt_ms] = max(bulk_mbit(top) for _ in range(3))
        assert max(row.size_bytes for row in rows) == 1514
    print("\n" + ", ".join(f"round trip {rtt} ms: {rate:.0f} Mbit/s" for rtt, rate in rates.items()))
    assert rates[0] >= 200


def test_added_delay_and_lateness(tmp_path: FilePath) -> None:
    with namespaces.topology() as top, link(top, tmp_path, rtt_ms=40) as rows:
        receiver = top.server.call(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        sender = top.client.call(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        with receiver, sender:
            receiver.bind((SERVER_IPV4, 9999))
            for _ in range(1000):
                sender.sendto(b"x", (SERVER_IPV4, 9999))
                time.sleep(0.002)
            time.sleep(0.1)
    late_us = sorted((row.left_at - row.arrived_at) / 1e3 - 20_000 for row in rows if row.kind == "udp" and row.left_at)
    p99 = late_us[len(late_us) * 99 // 100]
    print(
        f"\n{len(late_us)} datagrams, late by {statistics.median(late_us):.0f} µs at the median, {p99:.0f} at p99, {late_us[-1]:.0f} at most"
    )
    assert len(late_us) == 1000
    assert 0 <= statistics.median(late_us) <= 100
