"""A real nginx between netdiag and a stream: with its default buffering the detector says so, without it the events flow."""

from __future__ import annotations

from pathlib import Path

import pytest

from netdiag import api
from netdiag.lab import Behaviour
from netdiag.records.stream import Delivery, StreamTiming
from tests.support.lab import StartLab, start_lab
from tests.support.peers import running_peer

__all__ = ["start_lab"]
pytestmark = [pytest.mark.peers, pytest.mark.xdist_group("timing")]
STREAM = Behaviour(stream=True, wait_ms=20, events=50, gap_ms=30, event_bytes=190)


def through_nginx(start_lab: StartLab, folder: Path, buffering: str, arm: str) -> StreamTiming:
    upstream = start_lab(STREAM).url.replace("localhost", "127.0.0.1")
    block = f"location / {{ proxy_pass {upstream}; proxy_http_version 1.1; proxy_buffering {buffering}; }}"
    with running_peer("nginx", folder, more=block) as peer:
        found = api.probe(peer.url + "/v1/chat/completions", cacert=peer.ca_file, arms=(arm,), trials=1, capture="none")
    (exchange,) = found.exchanges
    assert exchange.stream is not None, exchange
    return exchange.stream


def test_default_buffering_is_found(start_lab: StartLab, tmp_path: Path) -> None:
    """Over HTTP/1.1; nginx 1.22 lets the same events through to an HTTP/2 client one by one."""
    scores = through_nginx(start_lab, tmp_path, "on", "h1").buffering
    assert scores is not None
    assert scores.verdict is Delivery.BUFFERED, scores
    assert scores.first_event_share is not None
    assert scores.first_event_share > 0.9


@pytest.mark.parametrize("arm", ["h1", "h2"])
def test_without_buffering_events_flow(start_lab: StartLab, tmp_path: Path, arm: str) -> None:
    scores = through_nginx(start_lab, tmp_path, "off", arm).buffering
    assert scores is not None
    assert scores.verdict is Delivery.FLOWING, scores
