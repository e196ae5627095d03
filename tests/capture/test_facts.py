"""What a reader learns about a file besides its packets."""

from __future__ import annotations

from netdiag.capture import facts as module
from netdiag.capture.facts import FileFacts
from netdiag.wire.tables import Interface


def test_anomalies_of_one_file_are_bounded() -> None:
    facts = FileFacts()
    for i in range(module.MAX_ANOMALIES + 5):
        facts.anomaly(f"damage {i}", offset=i)
    assert len(facts.anomalies) == module.MAX_ANOMALIES
    assert (facts.anomalies[0].protocol, facts.anomalies[0].offset) == ("file", 0)


def test_a_file_is_cut_where_it_first_was() -> None:
    facts = FileFacts()
    facts.cut("first", 100)
    facts.cut("second", 50)
    assert facts.cut_at_byte == 100
    assert len(facts.anomalies) == 2


def test_drops_are_what_statistics_say_else_what_packets_do() -> None:
    facts = FileFacts()
    assert facts.dropped_packets is None
    facts.drops_between_packets = 3
    assert facts.dropped_packets == 3
    facts.drops.update({0: 0, 1: 2})
    assert facts.dropped_packets == 2


def test_the_coarsest_interface_sets_the_resolution() -> None:
    def interface(ticks: int) -> Interface:
        return Interface(link_type=1, snap_bytes=0, ticks_per_second=ticks)

    assert FileFacts().timestamp_resolution_ns is None
    assert FileFacts(interfaces=[interface(10**9), interface(10**6)]).timestamp_resolution_ns == 1_000
    assert FileFacts(interfaces=[interface(10**12)]).timestamp_resolution_ns == 1
