"""A window is used up before its last octet is: what is left is too small for a segment, and the edge that counts is the one the sender knew."""

from __future__ import annotations

import io
from typing import Any

import pytest

import netdiag
from netdiag.lab.builder.output import record
from netdiag.records.exchange import Exchange
from netdiag.records.timing import PhaseName
from tests.support.conversation import CLIENT, MS, SERVER, Conversation
from tests.support.scenarios import scenario_of

SEGMENT, RTT_MS = 1460, 50
WINDOW = 60
"""Scaled by 128: 7,680 octets, five segments and 380 octets that are no segment."""


def download(*, window: int = WINDOW, pause_ms: float = 0, segments: int = 5, bursts: int = 4) -> Conversation:
    """Captured at the client, which acknowledges each burst at once; the next comes a round trip (and ``pause_ms``) after."""
    talk = Conversation(server=("10.0.0.2", 80))
    talk.window[CLIENT] = window
    talk.opens(rtt_ms=RTT_MS).client(b"?")
    for _ in range(bursts):
        talk.after(RTT_MS + pause_ms)
        for _ in range(segments):
            talk.server(b"x" * SEGMENT)
            talk.after(0.01)
        talk.acks(CLIENT)
    return talk


def full_ms(talk: Conversation) -> float:
    return talk.wire().connection().sides.server.window_full_ns / MS


def test_bursts_of_a_window_each_wait_for_its_opening() -> None:
    assert full_ms(download()) == pytest.approx(3 * RTT_MS, rel=0.01)


@pytest.mark.parametrize(
    "otherwise",
    [
        {"window": 512},  # as many octets would fit eight times
        {"pause_ms": 100},  # the window had been open all that time
        {"segments": 3},  # there was room for two more
    ],
)
def test_what_the_window_left_room_for_it_did_not_stop(otherwise: dict[str, Any]) -> None:
    assert full_ms(download(**otherwise)) == 0


def test_at_the_sender_the_window_counts_that_came_last() -> None:
    talk = Conversation(server=("10.0.0.2", 80))
    talk.window[SERVER] = WINDOW
    talk.opens(rtt_ms=RTT_MS).client(b"?")
    talk.after(RTT_MS).acks(SERVER)
    for _ in range(4):
        for _ in range(5):
            talk.after(0.01).client(b"x" * SEGMENT)
        talk.after(RTT_MS).acks(SERVER)
    assert talk.wire().connection().sides.client.window_full_ns / MS == pytest.approx(3 * RTT_MS, rel=0.01)


def limited(side: str, phase: PhaseName, request: dict[str, Any], window_bytes: int) -> tuple[float, Exchange]:
    document: dict[str, Any] = {
        "path": {"rtt_ms": RTT_MS},
        "tcp": {side: {"window_bytes": window_bytes}},
        "answer": {"stream": False},
        "connection": [{"request": [request]}],
    }
    (found,) = netdiag.analyze(io.BytesIO(record(scenario_of(document)).capture)).exchanges
    (span,) = [p for p in found.phases if p.name is phase]
    assert span.window_ns is not None
    return span.window_ns / span.duration_ns, found


UPLOAD: dict[str, Any] = {"body_bytes": 200_000}
DOWNLOAD: dict[str, Any] = {"method": "GET", "path": "/bytes/200000", "body_bytes": 0}


@pytest.mark.parametrize(
    ("side", "phase", "request_"),
    [("server", PhaseName.SEND, UPLOAD), ("client", PhaseName.TRANSFER, DOWNLOAD)],
)
def test_a_small_window_on_a_long_path_is_most_of_the_phase(
    side: str, phase: PhaseName, request_: dict[str, Any]
) -> None:
    share, _ = limited(side, phase, request_, 20_000)
    assert share > 0.85
    share, found = limited(side, phase, request_, 1 << 20)
    assert share == 0, "slow start is no window"
    assert found.window_ns == 0
