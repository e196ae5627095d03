"""Whether a trial is what its arm's name says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from netdiag.stats.labels import mislabelled
from netdiag.units import NS_PER_S
from tests.support.analyses import streamed
from tests.support.fabricated import CLIENT, SERVER, connection, exchange, session

TEXT = "wait 30 | transfer 10"
V6 = replace(SERVER, address="2001:db8::7")


def why(arm: str | None, *, over: Any = None, **fields: Any) -> str | None:
    return mislabelled(exchange(TEXT, arm=arm, **fields), over)


@pytest.mark.parametrize("arm", [None, "h1", "h1+cold", "h1+ipv4+tls1.3", "a.test h1+stream", "h1+idle30s"])
def test_what_nothing_contradicts_belongs(arm: str | None) -> None:
    assert why(arm, over=connection(), reused=False, protocol="http/1.1") is None


@pytest.mark.parametrize(
    ("arm", "fields", "reason"),
    [
        ("h2", {"protocol": "http/1.1"}, "h2 trial spoke http/1.1"),
        ("h1", {"protocol": "h2"}, "h1 trial spoke h2"),
        ("h1+warm", {"reused": False}, "warm trial on a new connection"),
        ("h1+cold", {"reused": True}, "trial for a new connection on a reused one"),
        ("h1+resumed", {"reused": True}, "trial for a new connection on a reused one"),
        ("a.test H2+WARM", {"protocol": "h2", "reused": False}, "warm trial on a new connection"),
    ],
)
def test_what_the_wire_contradicts_does_not(arm: str, fields: dict[str, Any], reason: str) -> None:
    assert why(arm, **fields) == reason


@pytest.mark.parametrize(
    ("arm", "resumed", "reason"),
    [
        ("h1+resumed", False, "resumed trial with a full handshake"),
        ("h1+resumed", True, None),
        ("h1+resumed", None, None),
        ("h1+cold", True, "cold trial with a resumed session"),
        ("h1+cold", None, None),
    ],
)
def test_resumption_counts_where_it_is_known(arm: str, resumed: bool | None, reason: str | None) -> None:
    over = connection(tls=session(resumed=resumed))
    assert why(arm, over=over, protocol="http/1.1", reused=False) == reason


def test_address_family_and_tls_version() -> None:
    over = connection(server=V6, client=replace(CLIENT, address="2001:db8::1"), tls=session(version="TLSv1.2"))
    assert why("h1+ipv4", over=over) == "ipv4 trial over ipv6"
    assert why("h1+ipv6", over=over) is None
    assert why("h1+tls1.3", over=over) == "tls1.3 trial spoke TLSv1.2"
    assert why("h1+tls1.2", over=over) is None
    assert why("h1+tls1.3", over=connection(tls=session(version=None))) is None


@pytest.mark.parametrize(
    ("asked", "actual_s", "belongs"),
    [("30s", 30.5, True), ("30s", 34.0, True), ("30s", 34.1, False), ("30s", 26.9, False), ("500ms", 0.5, True)],
)
def test_idleness_within_a_tenth_and_a_second(asked: str, actual_s: float, belongs: bool) -> None:
    said = why(f"h1+idle{asked}", idle_before_ns=round(actual_s * NS_PER_S), reused=True)
    assert (said is None) == belongs
    assert said is None or said.startswith(f"idle{asked} trial after ")


def test_deliveries() -> None:
    head = (("content-type", "application/json"),)
    assert why("h1+stream", stream=None, response_headers=head) == "stream trial got no events"
    assert why("h1+stream", stream=None, response_headers=()) is None  # its head could not be read
    assert why("h1+stream", stream=None, response_headers=head, status=None) is None
    events = streamed().exchanges[0].stream
    assert why("h1+whole", stream=events, response_headers=head) == "whole trial got a stream of events"
    assert why("h1+stream", stream=events, response_headers=head) is None
