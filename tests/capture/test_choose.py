"""Which interfaces a probe watches, and which backend ``auto`` ends up with. Nothing is captured here."""

from __future__ import annotations

from typing import Any

import pytest

from netdiag.capture import choose
from netdiag.capture.filter import CaptureFilter, Rule
from netdiag.capture.live import CaptureFailed, LiveCapture
from netdiag.errors import PrivilegeMissing, ToolMissing, Unavailable, UsageError


def test_known_targets_need_no_resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "name_servers", lambda: ("127.0.0.53",))
    monkeypatch.setattr(choose, "interfaces_to", lambda addresses: {f"to {a}": a for a in addresses})
    assert choose.watched_interfaces(("10.1.2.3",)) == {"to 10.1.2.3": "10.1.2.3"}


def test_a_local_resolver_is_watched_beside_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = {"127.0.0.53": "lo", "1.1.1.1": "eth0", "2606:4700:4700::1111": "eth0"}
    monkeypatch.setattr(choose, "name_servers", lambda: ("127.0.0.53",))
    monkeypatch.setattr(choose, "interfaces_to", lambda addresses: {ways[a]: a for a in reversed(tuple(addresses))})
    assert set(choose.watched_interfaces(())) == {"lo", "eth0"}


def test_no_way_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "interfaces_to", lambda addresses: {})
    with pytest.raises(UsageError, match="no interface"):
        choose.watched_interfaces(("10.1.2.3",))


def test_the_filter_holds_targets_dns_proxy_and_marker() -> None:
    capture = choose.live_capture(
        name="scapy", path="x", ports={8443}, hosts=("127.0.0.1",), also=(Rule(3128, "127.0.0.1"),)
    )
    rules = capture.task.filter.rules
    assert rules[:3] == (Rule(8443, "127.0.0.1"), Rule(53), Rule(3128, "127.0.0.1"))
    assert rules[3].host == "127.0.0.1"
    assert capture.task.interfaces == ("lo",)
    capture.abort()


def test_a_wide_capture_watches_loopback_too() -> None:
    capture = choose.wide_capture(name="scapy", path="x")
    assert "lo" in capture.task.interfaces
    assert capture.task.filter.all_tcp
    assert capture.task.filter.text().startswith("tcp or port 443 or port 53 or ")
    capture.abort()


class Fake:
    """A capture that starts, or does not."""

    def __init__(self, error: Unavailable | None) -> None:
        self.error = error

    def start(self) -> None:
        """As ``LiveCapture.start``."""
        if self.error is not None:
            raise self.error


def started(name: str, **errors: Unavailable | None) -> tuple[Any, list[str]]:
    """Who was tried, and what came of it."""
    tried: list[str] = []

    def make(candidate: str) -> LiveCapture:
        tried.append(candidate)
        return Fake(errors.get(candidate))  # type: ignore[return-value]

    try:
        return choose.start_first(name, make), tried
    except Unavailable as error:
        return error, tried


def test_auto_takes_dumpcap_first_then_scapy() -> None:
    assert started("auto")[1] == ["dumpcap"]
    assert started("auto", dumpcap=ToolMissing("no dumpcap"))[1] == ["dumpcap", "scapy"]
    assert started("auto", dumpcap=CaptureFailed("sees nothing"))[1] == ["dumpcap", "scapy"]


def test_the_reason_is_that_of_the_first_one_installed() -> None:
    missing, refused, other = ToolMissing("no dumpcap"), PrivilegeMissing("not allowed"), PrivilegeMissing("nor this")
    assert started("auto", dumpcap=missing, scapy=refused)[0] is refused
    assert started("auto", dumpcap=refused, scapy=other)[0] is refused
    assert started("auto", dumpcap=missing, scapy=ToolMissing("no scapy"))[0] is missing


def test_a_backend_asked_for_by_name_has_no_substitute() -> None:
    refused = PrivilegeMissing("not allowed")
    assert started("scapy", scapy=refused) == (refused, ["scapy"])


def test_unknown_backend() -> None:
    with pytest.raises(UsageError, match="tcpdump"):
        choose.backend("tcpdump")


def test_a_filter_for_everything() -> None:
    text = CaptureFilter((Rule(53),), all_tcp=True).text()
    assert text.startswith("tcp or port 53 or icmp")
