"""TCP analysis against Wireshark's, packet by packet, on conversations of our own in which both must see the same."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import numpy as np
import pytest

from netdiag.wire.acks import keep_alives
from netdiag.wire.tables import NONE, SegmentKind
from netdiag.wire.transmissions import transmissions
from netdiag.wire.window import full_windows, window_edges, zero_windows
from tests.support.conversation import CLIENT, SERVER, Conversation, Wire, filled_window, wire_of
from tests.support.packets import RST, SYN, Timed, pcap
from tests.support.tools import needs_tshark

FLAGS = {
    "retransmission": "tcp.analysis.retransmission",
    "fast": "tcp.analysis.fast_retransmission",
    "spurious": "tcp.analysis.spurious_retransmission",
    "out of order": "tcp.analysis.out_of_order",
    "duplicate ACK": "tcp.analysis.duplicate_ack",
    "zero window": "tcp.analysis.zero_window",
    "window full": "tcp.analysis.window_full",
    "keep-alive": "tcp.analysis.keep_alive",
}
Found = dict[str, set[int]]


def tshark_says(path: Path) -> tuple[Found, dict[int, int], dict[int, int]]:
    """Frames by flag, the stream of each frame, and the initial round trip (ns) of each stream."""
    fields = ["frame.number", "tcp.stream", "tcp.analysis.initial_rtt", *FLAGS.values()]
    command = ["tshark", "-r", str(path), "-T", "fields", "-E", "separator=|", *(a for f in fields for a in ("-e", f))]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found: Found = {name: set() for name in FLAGS}
    streams: dict[int, int] = {}
    rtts: dict[int, int] = {}
    for line in lines:
        number, stream, rtt, *flags = line.split("|")
        streams[int(number)] = int(stream)
        if rtt:
            rtts[int(stream)] = round(float(rtt) * 1e9)
        for name, flag in zip(FLAGS, flags, strict=True):
            if flag:
                found[name].add(int(number))
    found["retransmission"] -= found["fast"] | found["spurious"] | found["out of order"]
    return found, streams, rtts


def netdiag_says(wire: Wire) -> Found:
    flows, found = wire.flows, transmissions(wire.flows)
    number, kinds = flows.packets.number, found.resent.kinds
    edges = window_edges(flows, wire.table.sides.window_scale_used)

    def frames(kind: SegmentKind) -> set[int]:
        return set(number[found.resent.rows[kinds == kind]].tolist())

    syns = np.flatnonzero((flows.packets.flags & SYN) != 0)
    opening = set(found.handshake.syn_row.tolist()) | set(found.handshake.syn_ack_row.tolist())
    return {
        "retransmission": frames(SegmentKind.RETRANSMISSION)
        | frames(SegmentKind.TAIL_LOSS_PROBE)
        | {int(number[row]) for row in syns.tolist() if row not in opening},
        "fast": frames(SegmentKind.FAST_RETRANSMISSION),
        "spurious": frames(SegmentKind.SPURIOUS),
        "out of order": frames(SegmentKind.OUT_OF_ORDER),
        "duplicate ACK": set(number[found.duplicate_acks].tolist()),
        "zero window": set(number[zero_windows(flows, found.copies)].tolist()),
        "window full": set(number[full_windows(flows, edges)].tolist()),
        "keep-alive": set(number[keep_alives(flows)].tolist()),
    }


def retransmitted() -> Conversation:
    talk = Conversation().opens(rtt_ms=20)
    request = talk.client(b"request")
    talk.after(230).again(request)
    talk.after(20).server(b"x" * 1460)
    talk.acks(CLIENT)
    talk.server(b"y" * 1460)
    return talk.closes()


def fast() -> Conversation:
    talk = Conversation(step_ms=0.1).opens(rtt_ms=20)
    sent = [talk.client(b"%d" % i * 700) for i in range(6)]
    talk.after(20).acks(SERVER, 700)
    for _ in range(4):
        talk.acks(SERVER, 700)
    talk.again(sent[1])
    talk.after(20).acks_everything(SERVER)
    return talk


def spurious() -> Conversation:
    talk = Conversation().opens(rtt_ms=20)
    sent = talk.client(b"request")
    talk.acks(SERVER)
    talk.after(300).again(sent)
    return talk


def reordered() -> Conversation:
    talk = Conversation().opens(rtt_ms=20)
    early = talk._identification[SERVER] + 1
    late = talk.server(b"a" * 100, captured=False)
    talk.server(b"b" * 100)
    talk.server(b"c" * 100)
    talk.packet(SERVER, late.data, flags=late.flags, offset=late.offset, identification=early)
    talk.acks_everything(CLIENT)
    return talk


def zero_window() -> Conversation:
    talk = Conversation().opens()
    talk.server(b"x" * 1000)
    talk.window[CLIENT] = 0
    talk.acks(CLIENT)
    talk.after(200).packet(SERVER, offset=999)
    talk.acks(CLIENT)
    talk.window[CLIENT] = 512
    talk.after(300).acks(CLIENT)
    return talk.closes()


def kept_alive() -> Conversation:
    talk = Conversation().opens()
    talk.client(b"request")
    talk.acks(SERVER)
    for octets in (b"\0", b""):
        talk.after(60_000).packet(CLIENT, octets, offset=6)
        talk.acks(SERVER)
    return talk


def repeated_syn() -> Conversation:
    talk = Conversation()
    talk.packet(CLIENT, flags=SYN)
    talk.after(1000)
    return talk.opens(rtt_ms=15)


def from_the_middle() -> Conversation:
    talk = Conversation(isns=(2**32 - 20, 2**32 - 3000))
    talk.client(b"GET / HTTP/1.1\r\n")
    for _ in range(5):
        talk.after(30).server(b"x" * 1000)
        talk.acks(CLIENT)
    return talk


SCENES = (
    retransmitted,
    fast,
    spurious,
    reordered,
    zero_window,
    filled_window,
    kept_alive,
    repeated_syn,
    from_the_middle,
)


def assert_equal(frames: list[Timed], folder: Path) -> None:
    path = folder / "conversation.pcap"
    path.write_bytes(pcap(frames))
    wire = wire_of(frames)
    flags, streams, rtts = tshark_says(path)
    ours = netdiag_says(wire)
    assert {name: sorted(ours[name]) for name in FLAGS} == {name: sorted(flags[name]) for name in FLAGS}
    assert dict(zip(wire.flows.packets.number.tolist(), wire.flows.connection.tolist(), strict=True)) == streams
    opened = transmissions(wire.flows).handshake
    assert {i: rtt for i, rtt in enumerate(opened.rtt_ns.tolist()) if rtt != NONE} == rtts


@needs_tshark
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_one_conversation(scene: object, tmp_path: Path) -> None:
    assert callable(scene)
    assert_equal(scene().frames, tmp_path)


@needs_tshark
def test_streams_are_numbered_alike_when_pairs_are_reused(tmp_path: Path) -> None:
    chance = random.Random(5)
    frames: list[Timed] = []
    for turn in range(60):
        port = 40_000 + chance.randrange(12)
        isns = (chance.randrange(2**32), chance.randrange(2**32))
        talk = Conversation(client=("10.0.0.1", port), isns=isns, at_ns=10**18 + turn * 10**9).opens()
        talk.client(b"request")
        talk.after(30).server(b"response")
        talk.acks(CLIENT)
        if chance.random() < 0.7:
            talk.closes()
        else:
            talk.packet(SERVER, flags=RST)
        frames += talk.frames
    assert_equal(frames, tmp_path)


@needs_tshark
def test_many_lossy_conversations_at_once(tmp_path: Path) -> None:
    """Every lost segment is sent again after a time-out, while nothing else is on its way."""
    chance = random.Random(11)
    frames: list[Timed] = []
    for i in range(25):
        isns = (chance.randrange(2**32), chance.randrange(2**32))
        talk = Conversation(client=("10.0.0.1", 41_000 + i), isns=isns, at_ns=10**18 + i * 777_777).opens(rtt_ms=20)
        for _ in range(12):
            side = chance.choice((CLIENT, SERVER))
            sent = talk.after(30).packet(side, b"x" * chance.randint(2, 1460))
            talk.sent[side] += len(sent.data)
            if chance.random() < 0.3:
                talk.after(250).again(sent)
            talk.after(20).acks_everything(1 - side)
        frames += talk.frames
    assert_equal(sorted(frames, key=lambda frame: frame[0]), tmp_path)
