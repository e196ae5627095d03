"""Events behind a content coding are those of the truth: each at the moment of the octets that complete it, on every tier's server."""

from __future__ import annotations

import pytest

from netdiag import api
from netdiag.lab import Behaviour
from netdiag.lab.compare import match
from netdiag.lab.scenario import bundled, varied
from netdiag.lab.score import run
from netdiag.protocols.content_coding import obstacle
from tests.support.lab import StartLab, start_lab

__all__ = ["start_lab"]
every_coding = pytest.mark.parametrize(
    "coding",
    [
        "gzip",
        "deflate",
        "zstd",
        pytest.param(
            "br",
            marks=pytest.mark.skipif(
                obstacle(("br",)) is not None, reason="the package brotli, 1.2 or later, is not installed"
            ),
        ),
    ],
)


@every_coding
@pytest.mark.parametrize("protocol", ["h2", "http/1.1"])
def test_events_and_their_times_are_the_true_ones(coding: str, protocol: str) -> None:
    document = {"answer.coding": coding, "connection": [{"protocol": protocol, "request": [{}]}]}
    result = run(varied(bundled("compressed-stream"), document), api.analyze)
    ((true, found),) = match(result.recorded.truth, result.analysis)
    assert found is not None
    assert found.stream is not None
    told = [(e.kind, e.deliverable_at, e.packet) for e in found.stream.timeline]
    assert told == [(e.kind, e.deliverable_at, e.packet) for e in true.events if e.kind != "coding-end"]
    assert len(told) == 13


@every_coding
@pytest.mark.parametrize("arm", ["h1", "h2"])
def test_a_probe_reads_them_too(start_lab: StartLab, coding: str, arm: str) -> None:
    server = start_lab(Behaviour(stream=True, events=5, gap_ms=20, coding=coding))
    found = api.probe(server.url + "/v1/chat/completions", cacert=server.ca_file, trials=1, arms=(arm,), capture="none")
    (exchange,) = found.exchanges
    assert exchange.stream is not None
    assert (exchange.stream.api, exchange.stream.token_events, exchange.stream.tokens) == ("openai-chat", 5, 5)
    assert exchange.stream.logical_end_ns is not None
    assert exchange.stream.logical_end_ns >= 80_000_000


def test_what_cannot_be_read_is_said(start_lab: StartLab, monkeypatch: pytest.MonkeyPatch) -> None:
    server = start_lab(Behaviour(stream=True, events=2, coding="gzip"))
    monkeypatch.setattr("netdiag.protocols.event_body.obstacle", lambda codings: "their content coding is not known")
    found = api.probe(server.url + "/sse", cacert=server.ca_file, trials=1, arms=("h2",), capture="none")
    assert found.exchanges[0].stream is None
    assert any("events are not read" in a.reason for a in found.anomalies)
