"""Complaints about one connection are bounded."""

from __future__ import annotations

from netdiag.protocols.anomalies import AnomalyLog


def test_each_says_where() -> None:
    log = AnomalyLog("tls")
    log.add("a record lacks octets", packet=7, offset=100)
    (row,) = log.rows
    assert (row.protocol, row.reason, row.packet, row.offset) == ("tls", "a record lacks octets", 7, 100)


def test_hostile_traffic_fills_no_memory_with_complaints() -> None:
    log = AnomalyLog("http/1")
    for i in range(10_000):
        log.add(f"reason {i}")
    assert len(log.rows) == 201
    assert log.rows[0].reason == "reason 0"
    assert log.rows[-1].reason == "more anomalies of this connection are left out"
