"""The lines under a streamed answer: tokens only where reported, causes by name, a hop that collects, the server's own claims."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from netdiag.export.text import report
from netdiag.records.analysis import Analysis
from netdiag.records.server_report import ServerReport, ServerTime
from netdiag.records.stream import Delivery, StallCause, StreamTiming
from tests.support import analyses
from tests.support.fabricated import ns
from tests.support.hostile import FORBIDDEN, PAYLOADS


def shown(analysis: Analysis) -> str:
    return " ".join(" ".join(line.plain.split()) for line in report(analysis, width=100))


def changed(**fields: Any) -> Analysis:
    whole = analyses.streamed()
    (exchange,) = whole.exchanges
    assert exchange.stream is not None
    stream: StreamTiming = replace(exchange.stream, **fields)
    return replace(whole, exchanges=(replace(exchange, stream=stream),))


def told(report: ServerReport) -> Analysis:
    whole = analyses.one_request()
    return replace(whole, exchanges=(replace(whole.exchanges[0], server_report=report),))


def test_tokens_and_their_rate_only_when_the_server_counts_them() -> None:
    assert "tokens" not in shown(changed(tokens=None)).replace("first token", "")
    assert "/s after the first" in shown(changed())


def test_no_rate_where_a_hop_changed_the_times() -> None:
    stream = analyses.streamed().exchanges[0].stream
    assert stream is not None
    assert stream.buffering is not None
    held = replace(stream.buffering, verdict=Delivery.BUFFERED, reason="the first event came after 98% of the time")
    text = shown(changed(buffering=held))
    assert "/s after the first" not in text
    assert "delivery buffered on the way: the first event came after 98% of the time" in text
    assert "delivery" not in shown(changed())
    whole = changed(buffering=held)
    packed = replace(whole.exchanges[0], response_headers=(("content-encoding", "gzip"),))
    assert "time; content-encoding gzip may be why: try -H" in shown(replace(whole, exchanges=(packed,)))


def test_every_cause_is_named() -> None:
    stream = analyses.streamed().exchanges[0].stream
    assert stream is not None
    (stall,) = stream.stalls
    for cause, method, words in (
        (StallCause.NETWORK, "hole", "network, octets waited for a lost segment"),
        (StallCause.SERVER, "signs-of-life", "server, 2 pings arrived meanwhile"),
        (StallCause.CLIENT, "window", "client, its receive window was closed"),
        (StallCause.CLIENT, "read-lag", "client, the octets were here and were not read"),
        (StallCause.UNDECIDED, "none", "cannot tell, too few events follow"),
    ):
        assert words in shown(changed(stalls=(replace(stall, cause=cause, method=method, signs_of_life=2),)))


def test_of_many_stalls_the_longest_are_shown() -> None:
    stream = analyses.streamed().exchanges[0].stream
    assert stream is not None
    (stall,) = stream.stalls
    text = shown(changed(stalls=tuple(replace(stall, excess_ns=ns(50 + i)) for i in range(10))))
    assert text.count("more than usual") == 3
    assert "7 shorter stalls" in text


def test_what_the_server_says_stands_beside_what_was_measured() -> None:
    times = (ServerTime("processing", ns(190), "openai-processing-ms"),)
    text = shown(told(ServerReport(times=times, edge="FRA")))
    assert "server says processing 190.0 ms (openai-processing-ms) of 214.9 ms waited, at FRA" in text
    assert "server says" not in shown(analyses.one_request())


def test_a_contradicted_claim_is_marked_and_the_measurement_stands() -> None:
    report = ServerReport(
        times=(ServerTime("total", ns(9_000), "x-total-time"),), conflicts=("x-total-time claims 9.00 s",)
    )
    assert "x-total-time claims 9.00 s; the measurement stands" in shown(told(report))


def test_hostile_words_of_a_server_are_harmless() -> None:
    for payload in PAYLOADS:
        hostile = ServerReport(times=(ServerTime(payload, 5, payload),), edge=payload, conflicts=(payload,))
        assert not FORBIDDEN.search(shown(told(hostile)))


def test_a_refusal_s_retry_after_is_told() -> None:
    whole = analyses.one_request()

    def answered(status: int, *fields: tuple[str, str]) -> str:
        return shown(replace(whole, exchanges=(replace(whole.exchanges[0], status=status, response_headers=fields),)))

    assert "server asks to wait 1 s (retry-after)" in answered(429, ("retry-after", "1"))
    assert "server asks to wait 120 ms (retry-after-ms)" in answered(
        503, ("retry-after", "1"), ("retry-after-ms", "120")
    )
    assert "wait Wed, 21 Oct 2026 07:28:00 GMT (" in answered(429, ("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"))
    assert "asks to wait" not in answered(200, ("retry-after", "1"))
    assert not FORBIDDEN.search(answered(429, ("retry-after", "\x1b[2J")))
