"""Streams of a real server on loopback: stalls by cause at L1, late reading, buffering, the server's own times; each with a control."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

import netdiag
from netdiag import api
from netdiag.lab import Behaviour, LabServer
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange
from netdiag.records.stream import Delivery, StallCause, StreamStall
from tests.support.lab import StartLab, start_lab

__all__ = ["start_lab"]
pytestmark = pytest.mark.xdist_group("timing")
NS_PER_MS = 1_000_000
STREAM = {"stream": True, "wait_ms": 20.0, "events": 40, "gap_ms": 15.0}
PATH = "/v1/chat/completions"
SURE_NS = 200 * NS_PER_MS
"""What a busy machine does not do by itself."""


def probed(server: LabServer, **options: Any) -> Exchange:
    found = api.probe(
        server.url + PATH, cacert=server.ca_file, trials=1, capture="none", **({"arms": ("h2",)} | options)
    )
    (exchange,) = found.exchanges
    assert exchange.stream is not None
    return exchange


def sure(exchange: Exchange) -> list[StreamStall]:
    assert exchange.stream is not None
    return [s for s in exchange.stream.stalls if s.excess_ns > SURE_NS]


def eventually_quiet(make: Callable[[], Exchange]) -> Exchange:
    """A busy machine may stall a stream; a stream that is stalled three times in a row is not the machine's."""
    for _ in range(3):
        exchange = make()
        if not sure(exchange):
            break
    return exchange


@pytest.mark.parametrize("arm", ["h1", "h2"])
def test_a_pause_is_the_server_s(start_lab: StartLab, arm: str) -> None:
    paused = start_lab(Behaviour(**STREAM, pause_after=15, pause_ms=400))
    (stall,) = sure(probed(paused, arms=(arm,)))
    assert (stall.cause, stall.method) == (StallCause.SERVER, "conservation")
    assert stall.excess_ns == pytest.approx(400 * NS_PER_MS, abs=60 * NS_PER_MS)
    assert sure(eventually_quiet(lambda: probed(start_lab(Behaviour(**STREAM)), arms=(arm,)))) == []


def test_events_know_their_record_and_when_they_were_read(start_lab: StartLab) -> None:
    exchange = probed(start_lab(Behaviour(**STREAM)))
    stream = exchange.stream
    assert stream is not None
    assert [e.record for e in stream.timeline] == sorted(e.record or 0 for e in stream.timeline)
    assert all(e.read_at is not None and e.read_at >= e.deliverable_at for e in stream.timeline)
    assert stream.chunks_per_read is not None
    assert stream.read_lag_ns is not None
    assert 0 <= stream.read_lag_ns < 100 * NS_PER_MS
    assert (stream.token_events, stream.tokens) == (40, 40)


def observed(server: LabServer, sleep_at: int | None) -> Exchange:
    """An application that reads its stream, and sleeps once while it does."""
    context = ssl.create_default_context(cafile=server.ca_file)
    with (
        httpx.Client(verify=context, http2=True, trust_env=False) as client,
        netdiag.observe(client, capture="none") as seen,
        client.stream("POST", server.url + PATH, json={"stream": True}) as response,
    ):
        for number, _ in enumerate(response.iter_raw()):
            if number == sleep_at:
                time.sleep(0.4)
    analysis: Analysis | None = seen.analysis
    assert analysis is not None
    return analysis.exchanges[0]


def test_a_reader_that_sleeps_is_named_and_the_stream_is_as_it_was(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(**STREAM))
    exchange = observed(server, 12)
    stalls = sure(exchange)
    if exchange.clocks is None or "kernel" not in exchange.clocks:
        pytest.skip("no kernel stamps here: only the reader's own clock tells when octets came")
    assert {s.cause for s in stalls} == {StallCause.CLIENT}
    assert max(s.excess_ns for s in stalls) == pytest.approx(385 * NS_PER_MS, abs=60 * NS_PER_MS)
    assert sure(eventually_quiet(lambda: observed(server, None))) == []


def test_a_hop_that_collects_everything(start_lab: StartLab) -> None:
    held = probed(start_lab(Behaviour(**STREAM, buffer_all=True))).stream
    assert held is not None
    assert held.buffering is not None
    assert held.buffering.verdict is Delivery.BUFFERED
    flowing = probed(start_lab(Behaviour(**STREAM))).stream
    assert flowing is not None
    assert flowing.buffering is not None
    assert flowing.buffering.verdict is Delivery.FLOWING


def test_the_server_s_own_time_stands_beside_the_measured_one(start_lab: StartLab) -> None:
    honest = probed(start_lab(Behaviour(**STREAM, processing_ms="true"))).server_report
    assert honest is not None
    assert [(t.name, t.ns) for t in honest.times] == [("processing", 20 * NS_PER_MS)]
    assert honest.conflicts == ()
    boast = probed(start_lab(Behaviour(**STREAM, processing_ms="90000"))).server_report
    assert boast is not None
    assert "openai-processing-ms claims 1 min 30 s" in boast.conflicts[0]
    assert probed(start_lab(Behaviour(**STREAM))).server_report is None


def test_a_trial_that_is_not_what_its_arm_says_does_not_count(start_lab: StartLab) -> None:
    from netdiag.probe.llm import LlmCall

    server = start_lab(Behaviour(events=3, stream=True))  # streams whatever is asked for
    call = LlmCall(api="openai", model="m")
    found = api.probe(
        server.url, cacert=server.ca_file, trials=1, capture="none", arms=("h2+whole", "h2+stream"), llm=call
    )
    reasons = {s.arm: [e.reason for e in s.excluded] for s in found.statistics}
    assert reasons == {"h2+whole": ["whole trial got a stream of events"], "h2+stream": []}
