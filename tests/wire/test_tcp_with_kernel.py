"""TCP analysis against the kernels of both ends and the link between them: real transfers in namespaces, over a link that drops or reorders
packets and logs which. The kernel counts what it sent again and why; the link knows what it dropped."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from netdiag.capture.source import open_capture
from netdiag.lab.emulator import LinkRow, read_log
from netdiag.lab.namespaces import SERVER_IPV4, Namespace, topology, why_not
from netdiag.lab.path import Path as LinkPath
from netdiag.wire.decode import decode
from netdiag.wire.tables import Packets, SegmentKind
from netdiag.wire.transmissions import transmissions
from tests.support.conversation import CLIENT, SERVER, Wire

_REASON = why_not() or (None if shutil.which("tcpdump") else "tcpdump is not installed")
pytestmark = [pytest.mark.netns, pytest.mark.skipif(_REASON is not None, reason=str(_REASON))]
PORT = "8000"
NOT_COUNTED = 0.5
"""Dropped packets per connection that no count can show, at most: SYN-ACKs, and last packets."""
MISTOLD = 0.01
"""Of the packets that filled holes, at most: the server's side is captured too, and on a busy machine its tcpdump may take packets in another
order than they left."""
SERVE = """
import socket, sys, threading, time
def serve(peer):
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while line := peer.recv(100):
        size, piece, gap = line.decode().split()
        for _ in range(int(size) // int(piece)):
            peer.sendall(b"x" * int(piece)); time.sleep(float(gap))
        peer.sendall(b"!")
listener = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=64)
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""
FETCH = """
import socket, sys, threading
def fetch(requests):
    peer = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    for request in requests:
        peer.sendall(request.encode())
        while not peer.recv(65536).endswith(b"!"): pass
    peer.close()
threads = [threading.Thread(target=fetch, args=(sys.argv[4:],)) for _ in range(int(sys.argv[3]))]
[t.start() for t in threads]; [t.join() for t in threads]
"""
BULK = ["300000 300000 0"] * 3


@dataclass(frozen=True)
class Run:
    """What every witness of one run says."""

    at_client: Wire
    at_server: Wire
    kernel: dict[str, int]
    """The server's counters (/proc/net/netstat and snmp, proc(5))."""
    link: list[LinkRow]

    def dropped(self, direction: str) -> int:
        return sum(row.direction == direction and row.action.startswith("drop") for row in self.link)


def counters() -> dict[str, int]:
    found: dict[str, int] = {}
    for name in ("netstat", "snmp"):
        lines = Path(f"/proc/thread-self/net/{name}").read_text().splitlines()
        for keys, values in zip(lines[::2], lines[1::2], strict=True):
            found |= {k: int(v) for k, v in zip(keys.split()[1:], values.split()[1:], strict=True)}
    return found


def wire(path: Path) -> Wire:
    with open_capture(path) as capture:
        packets = Packets.concat([decode(window).packets for window in capture.windows()])
        return Wire(packets, bytes(capture.buffer))


@contextlib.contextmanager
def running(namespace: Namespace, command: list[str], ready: bytes, **options: Any) -> Iterator[None]:
    """A program in a namespace, from its first line of output that says ``ready`` to SIGTERM."""
    process = namespace.start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    assert process.stdout is not None
    try:
        while ready not in (line := process.stdout.readline()):
            assert line, f"{command[0]} ended at once"
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=10)


def without_time_stamps() -> None:
    Path("/proc/sys/net/ipv4/tcp_timestamps").write_text("0")


def run(folder: Path, path: dict[str, Any], connections: int, requests: list[str], *, stamps: bool = True) -> Run:
    config, log = folder / "path.json", folder / "link.log"
    config.write_text(json.dumps(LinkPath.from_mapping(path).to_mapping()))
    emulator = [sys.executable, "-m", "netdiag.lab.emulator", str(config), str(log), "c", "s"]
    files = {"client": folder / "client.pcap", "server": folder / "server.pcap"}
    with contextlib.ExitStack() as stack:
        space = stack.enter_context(topology())
        stack.enter_context(running(space.link, emulator, b"ready"))
        for namespace in () if stamps else (space.client, space.server):
            namespace.call(without_time_stamps)
        for name, namespace in (("client", space.client), ("server", space.server)):
            dump = ["tcpdump", "-i", "eth0", "-U", "-B", "65536", "-Z", "root", "-w", str(files[name]), "tcp"]
            stack.enter_context(running(namespace, dump, b"listening"))
        stack.enter_context(running(space.server, [sys.executable, "-c", SERVE, SERVER_IPV4, PORT], b"ready"))
        fetch = [sys.executable, "-c", FETCH, SERVER_IPV4, PORT, str(connections), *requests]
        assert space.client.start(fetch).wait(60) == 0
        kernel = space.server.call(counters)
    return Run(wire(files["client"]), wire(files["server"]), kernel, read_log(log))


def total(seen: Wire, side: int, *fields: str) -> int:
    return sum(int(getattr(seen.table.sides, field)[side::2].sum()) for field in fields)


def test_losses_are_counted_and_named_as_the_sender_and_the_link_do(tmp_path: Path) -> None:
    done = run(tmp_path, {"rtt_ms": 20, "down": {"loss": 0.02}, "seed": 3}, 12, BULK)
    kernel, at_server, at_client = done.kernel, done.at_server, done.at_client
    assert kernel["RetransSegs"] > 20
    difference = kernel["RetransSegs"] - total(at_server, SERVER, "retransmitted_segments")
    # What its own queue refused the kernel counts too, and nobody sees.
    assert 0 <= difference <= max(2, 0.06 * kernel["RetransSegs"])
    fast, spurious = total(at_server, SERVER, "fast_retransmissions"), kernel["TCPDSACKRecv"]
    assert abs(fast - kernel["TCPFastRetrans"]) <= 0.2 * kernel["RetransSegs"] + spurious
    # On a busy machine the link itself may reorder, hence not simply none.
    told = told_beside_the_senders_side(done, at_client)
    assert told[True, True] > 20
    assert told[True, False] + told[False, True] <= MISTOLD * told.total()
    for seen in (at_server, at_client):
        assert total(seen, CLIENT, "out_of_order_segments") == 0
        assert total(seen, SERVER, "missing_bytes") == 0
    assert 0 <= done.dropped("down") - total(at_client, SERVER, "unseen_packets") <= NOT_COUNTED * 12
    assert total(at_client, SERVER, "loss_ns") > 0
    assert total(at_server, SERVER, "loss_ns") == 0


def test_reordering_is_named_so_at_the_receiver(tmp_path: Path) -> None:
    done = run(tmp_path, {"rtt_ms": 40, "down": {"reorder": 0.03, "reorder_ms": 3}, "seed": 3}, 8, BULK)
    assert total(done.at_client, SERVER, "out_of_order_segments") > 10
    assert total(done.at_client, SERVER, "fast_retransmissions", "timeout_retransmissions", "tail_loss_probes") == 0
    resent = total(done.at_client, SERVER, "retransmitted_segments")
    assert resent == total(done.at_client, SERVER, "spurious_retransmissions")
    assert abs(resent - done.kernel["RetransSegs"]) <= 1
    assert total(done.at_client, SERVER, "loss_ns") == 0


def test_lost_last_segments_of_a_slow_stream_are_found_by_the_packet_count(tmp_path: Path) -> None:
    """Tokens further apart than the probe time-out: at the client nothing but the count shows the loss."""
    done = run(tmp_path, {"rtt_ms": 10, "down": {"loss": 0.04}, "seed": 5}, 10, ["6000 170 0.35"])
    unseen_ns = total(done.at_client, SERVER, "unseen_loss_ns")
    assert 0 <= done.dropped("down") - total(done.at_client, SERVER, "unseen_packets") <= NOT_COUNTED * 10
    assert done.kernel["TCPLossProbes"] + done.kernel["TCPTimeouts"] > 3
    assert unseen_ns > 200_000_000 * (done.kernel["TCPLossProbes"] + done.kernel["TCPTimeouts"]) // 2


def unnumbered(seen: Wire) -> Wire:
    """Without the sender's packet count, which alone would tell."""
    return Wire(replace(seen.packets, ip_id=np.zeros_like(seen.packets.ip_id)), seen.buffer)


def told_beside_the_senders_side(done: Run, seen: Wire) -> Counter[tuple[bool, bool]]:
    """Of the packets that filled holes at the client: whether the server had sent their octets before, and whether they are told so."""
    sent = done.at_server.flows.sequence
    sent_again = dict(zip(identities(done.at_server), (sent.begin < sent.edge).tolist(), strict=True))
    received = identities(done.at_client)
    found = transmissions(seen.flows)
    kinds = dict(zip(found.resent.rows.tolist(), found.resent.kinds.tolist(), strict=True))
    # tcpdump may miss some on a busy machine.
    known = [row for row in found.fills.first_hole if received[row] in sent_again]
    return Counter((sent_again[received[row]], kinds[row] != SegmentKind.OUT_OF_ORDER) for row in known)


def identities(seen: Wire) -> list[tuple[int, ...]]:
    packets = seen.flows.packets
    return list(
        zip(packets.low.tolist(), packets.high.tolist(), packets.seq.tolist(), packets.ip_id.tolist(), strict=True)
    )


@pytest.mark.parametrize("stamps", [True, False], ids=["by time stamps", "by the least round trip"])
def test_what_fills_a_hole_was_sent_again_or_overtaken_as_the_senders_side_shows(stamps: bool, tmp_path: Path) -> None:
    path = {"rtt_ms": 30, "down": {"reorder": 0.03, "reorder_ms": 6, "loss": 0.02}, "seed": 3}
    done = run(tmp_path, path, 12, BULK, stamps=stamps)
    told = told_beside_the_senders_side(done, unnumbered(done.at_client))
    assert min(told[True, True], told[False, False]) > 20
    assert told[True, False] + told[False, True] <= MISTOLD * told.total()
