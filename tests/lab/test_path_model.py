"""The path's rules, packet by packet, without any network."""

from __future__ import annotations

import socket
import struct

import pytest

from netdiag.errors import UsageError
from netdiag.lab.frames import FORGED_TTL, FrameFacts, checksum, reset_for
from netdiag.lab.path import Direction, DirectionModel, Drop, Path

MS = 1_000_000
CLIENT, SERVER = "192.0.2.2", "192.0.2.1"


def tcp_frame(
    flags: int, payload: bytes = b"", *, source: str = CLIENT, destination: str = SERVER, port: int = 443
) -> bytes:
    tcp = struct.pack("!HHIIBBHHH", 40000, port, 1000, 2000, 0x50, flags, 65535, 0, 0) + payload
    head = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 7, 0, 64, 6, 0, socket.inet_aton(source), socket.inet_aton(destination)
    )
    return bytes(12) + b"\x08\x00" + head + tcp


SYN, SYN_ACK, ACK, FIN, RST = 2, 18, 16, 17, 4
DATA = tcp_frame(24, b"x" * 100)


def model(**options: object) -> DirectionModel:
    return DirectionModel(Direction(**options), seed=1)


def test_packets_are_told_apart_by_kind():
    kinds = {f: FrameFacts.of(tcp_frame(f)).kind for f in (SYN, SYN_ACK, ACK, FIN, RST)}
    assert kinds == {SYN: "syn", SYN_ACK: "syn-ack", ACK: "ack", FIN: "fin", RST: "rst"}
    assert FrameFacts.of(DATA).kind == "data"
    assert FrameFacts.of(DATA).payload_bytes == 100
    assert FrameFacts.of(b"short").kind == "other"


def test_delay_is_counted_from_the_arrival():
    (release,) = model(delay_ms=20.0).decide(5 * MS, DATA).releases
    assert release.at == 25 * MS


def test_serialisation_takes_the_time_of_the_octets():
    link = model(rate_mbit=10.0, delay_ms=10.0)
    size = len(DATA)
    first, second = (link.decide(0, DATA).releases[0].at for _ in range(2))
    assert first == 10 * MS + size * 800
    assert second == first + size * 800


def test_a_full_queue_drops():
    link = model(rate_mbit=1.0, queue_bytes=310)
    actions = [link.decide(0, DATA).action for _ in range(5)]
    assert actions == ["pass", "pass", "pass", "drop:queue", "drop:queue"]


def test_the_third_data_packet_is_dropped_and_nothing_else():
    link = model(drops=(Drop(what="data", nth=3),))
    actions = [
        link.decide(i, frame).action for i, frame in enumerate([tcp_frame(SYN), DATA, DATA, DATA, tcp_frame(ACK), DATA])
    ]
    assert actions == ["pass", "pass", "pass", "drop:rule", "pass", "pass"]


def test_two_syns_are_dropped_to_one_address_only():
    link = model(drops=(Drop(what="syn", count=2, address=SERVER),))
    other = tcp_frame(SYN, destination="192.0.2.9")
    actions = [link.decide(i, f).action for i, f in enumerate([other, tcp_frame(SYN), tcp_frame(SYN), tcp_frame(SYN)])]
    assert actions == ["pass", "drop:rule", "drop:rule", "pass"]


def test_large_packets_vanish_in_a_black_hole():
    link = model(blackhole_above_bytes=1200)
    assert link.decide(0, tcp_frame(24, b"x" * 1160)).action == "pass"
    assert link.decide(0, tcp_frame(24, b"x" * 1161)).action == "drop:mtu"


def test_a_nat_forgets_an_idle_flow_for_good():
    link = model(silent_after_idle_ms=100.0)
    assert link.decide(0, DATA).action == "pass"
    assert link.decide(90 * MS, DATA).action == "pass"
    assert link.decide(191 * MS, DATA).action == "drop:nat"
    assert link.decide(192 * MS, DATA).action == "drop:nat"


def test_jitter_keeps_the_order_unless_told_otherwise():
    kept = model(jitter_ms=30.0)
    times = [kept.decide(i * MS, DATA).releases[0].at for i in range(50)]
    assert times == sorted(times)
    free = model(jitter_ms=30.0, keep_order=False)
    times = [free.decide(i * MS, DATA).releases[0].at for i in range(50)]
    assert times != sorted(times)


def test_loss_follows_the_seed():
    def lost(seed: int) -> list[int]:
        link = DirectionModel(Direction(loss=0.05), seed)
        return [i for i in range(2000) if link.decide(i, DATA).action == "drop:loss"]

    assert lost(1) == lost(1) != lost(2)
    assert 60 <= len(lost(1)) <= 140


def test_reordering_holds_single_packets_back():
    link = model(reorder=0.1, reorder_ms=5.0)
    decisions = [link.decide(0, DATA) for _ in range(300)]
    held = [d for d in decisions if d.action == "hold"]
    assert 10 <= len(held) <= 60
    assert {d.releases[0].at for d in held} == {5 * MS}


def test_duplicates_leave_twice():
    decisions = [model(duplicate=1.0).decide(0, DATA)]
    assert [r.frame for r in decisions[0].releases] == [DATA, DATA]


def test_a_forged_reset_takes_the_place_of_the_second_data_packet():
    link = model(reset_at_data=2)
    assert link.decide(0, DATA).action == "pass"
    decision = link.decide(0, DATA)
    assert decision.action == "reset"
    forged = decision.releases[0].frame
    facts = FrameFacts.of(forged)
    assert (facts.kind, facts.ports, forged[22]) == ("rst", (40000, 443), FORGED_TTL)
    assert checksum(forged[14:34]) == 0


@pytest.mark.parametrize("address", [(CLIENT, SERVER)])
def test_the_forged_resets_tcp_checksum_is_right(address):
    forged = reset_for(DATA, FrameFacts.of(DATA))
    pseudo = socket.inet_aton(address[0]) + socket.inet_aton(address[1]) + struct.pack("!HH", 6, 20)
    assert checksum(pseudo + forged[34:]) == 0


def test_a_path_survives_the_way_to_the_link_process():
    path = Path.from_mapping({"rtt_ms": 40, "down": {"loss": 0.01, "drops": [{"what": "data", "nth": 3}]}})
    assert (path.up.delay_ms, path.down.delay_ms, path.down.drops[0].nth) == (20.0, 20.0, 3)
    assert Path.from_mapping(path.to_mapping()) == path


@pytest.mark.parametrize(
    "values",
    [{"rtt": 4}, {"up": {"delay": 3}}, {"up": {"loss": 1.5}}, {"up": {"drops": [{"what": "packet"}]}}, {"up": {"drops": [{"nth": 0}]}},
     {"down": {"rate_mbit": 0}}, {"up": {"delay_ms": -1}}, {"up": {"drops": [{"kth": 1}]}}],
)  # fmt: skip
def test_impossible_paths_are_one_clear_sentence(values):
    with pytest.raises(UsageError, match=r"path|drop"):
        Path.from_mapping(values)
