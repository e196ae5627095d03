"""The proxy-buffering detector, on built captures whose hop is known, each beside the same stream without the hop."""

from __future__ import annotations

import io
from typing import Any

import pytest

import netdiag
from netdiag.lab.builder.output import record
from netdiag.lab.scenario import bundled, varied
from netdiag.records.stream import Delivery, StallCause, StreamTiming
from tests.support.fabricated import ns

LONG = {"answer.buffer_all": False, "answer.events": 60, "answer.gap_ms": 50.0, "answer.event_bytes": 190}


def streamed(**changes: Any) -> StreamTiming:
    scenario = varied(bundled("buffering-hop"), LONG | {key.replace("__", "."): v for key, v in changes.items()})
    (exchange,) = netdiag.analyze(io.BytesIO(record(scenario).capture)).exchanges
    assert exchange.stream is not None
    return exchange.stream


@pytest.mark.parametrize("protocol", ["http/1.1", "h2"])
def test_event_by_event_is_flowing(protocol: str) -> None:
    stream = streamed(connection=[{"protocol": protocol, "request": [{}]}])
    scores = stream.buffering
    assert scores is not None
    assert scores.verdict is Delivery.FLOWING
    assert (scores.events_per_record, scores.block_bytes, scores.burst_period_ns) == (1.0, None, None)
    assert scores.first_event_share is not None
    assert scores.first_event_share < 0.1
    assert (stream.burst_factor, stream.stalls) == (1.0, ())


def test_everything_at_the_end_is_buffered() -> None:
    stream = streamed(answer__buffer_all=True)
    scores = stream.buffering
    assert scores is not None
    assert scores.verdict is Delivery.BUFFERED
    assert scores.first_event_share is not None
    assert scores.first_event_share > 0.9
    assert (scores.immediate_share, stream.burst_factor) == (1.0, 60.0)
    assert "first event came after" in scores.reason


def test_blocks_of_a_buffer_show_its_size() -> None:
    scores = streamed(answer__buffer_bytes=4_096).buffering
    assert scores is not None
    assert (scores.verdict, scores.block_bytes) == (Delivery.BUFFERED, 4_096)
    assert "just under 4096" in scores.reason


def test_a_fixed_time_is_a_burst_and_no_stall_of_the_network() -> None:
    for changes in ({"answer__buffer_ms": 500.0}, {"answer__burst": 10}):
        stream = streamed(**changes)
        scores = stream.buffering
        assert scores is not None
        assert scores.verdict is Delivery.BURSTY
        assert scores.burst_period_ns is not None
        assert scores.burst_period_ns == pytest.approx(ns(525), abs=ns(30))
        assert not [s for s in stream.stalls if s.cause is StallCause.NETWORK]


def test_a_short_answer_is_not_judged() -> None:
    scores = streamed(answer__events=6, answer__buffer_all=True).buffering
    assert scores is not None
    assert scores.verdict is Delivery.TOO_SHORT
