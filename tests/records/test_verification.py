"""Two witnesses compared: how often they agree."""

from __future__ import annotations

from netdiag.records.verification import Difference, Verification


def difference(field: str, reason: str | None = None) -> Difference:
    return Difference(field=field, where="frame 7", netdiag="1", witness="2", reason=reason)


def test_rates_count_both_sides() -> None:
    found = Verification(
        witness="tshark 4.4",
        agreed={"tcp.seq": 8, "http.status": 3},
        differences=[difference("tcp.seq"), difference("tcp.seq", "known"), difference("dns.name")],
    )
    assert found.rates() == {"dns.name": (0, 1), "http.status": (3, 3), "tcp.seq": (8, 10)}
    assert [d.field for d in found.unexplained] == ["tcp.seq", "dns.name"]
