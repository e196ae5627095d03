"""Fabricated analyses, one for each thing that a report or picture has to show."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from netdiag.analysis.buffering import buffering
from netdiag.analysis.stalls import Surroundings, find_stalls
from netdiag.records.analysis import Analysis
from netdiag.records.call import Backoff, Call
from netdiag.records.exchange import Exchange, Outcome
from netdiag.records.source import EvidenceLevel, Secrets
from netdiag.records.statistics import Comparison, Distribution, Statistics
from netdiag.records.stream import EventKind, StreamEvent, StreamTiming
from netdiag.units import NS_PER_MS
from tests.support.fabricated import T0, analysis, connection, exchange, ns, session, source

COLD = "dns 12.1 | tcp 18.3 | tls 38.2 | - 0.6 | send 0.2 | wait 214.9 | transfer 3.1"


def one_request() -> Analysis:
    """The request of the design's sketch."""
    return analysis(exchange(COLD))


def reused() -> Analysis:
    """Three requests one after the other on one connection; the second is slow in the server, the third is an error."""
    return analysis(
        exchange(COLD),
        exchange(
            "send 0.1 | wait 480.2 | transfer 1.1",
            at_ms=400,
            first_packet=31,
            ordinal=1,
            reused=True,
            idle_before_ns=ns(112.6),
        ),
        exchange(
            "send 0.1 | wait 19.8 | transfer 0.0",
            at_ms=1_000,
            first_packet=41,
            ordinal=2,
            reused=True,
            status=429,
            outcome=Outcome.HTTP_ERROR,
            response_bytes=180,
        ),
    )


def multiplexed(streams: int = 6) -> Analysis:
    """One cold HTTP/2 connection with several streams at once; the first paid for the set-up and the others waited for it."""
    first = exchange(COLD, protocol="h2", stream_id=1, path="/v1/items/0")
    others = [
        exchange(
            f"queue 69.2 | send 0.1 | wait {60 + 40 * i}.5 | transfer {2 + i}.0",
            protocol="h2",
            stream_id=1 + 2 * i,
            ordinal=i,
            first_packet=20 + 4 * i,
            path=f"/v1/items/{i}",
            opener_id=0,
        )
        for i in range(1, streams)
    ]
    return analysis(first, *others, connections=(connection(http_version="h2", tls=session(alpn="h2")),))


def keyless() -> Analysis:
    """No keys: phases told by record sizes, nothing of HTTP readable."""
    unread = {"protocol": None, "method": None, "scheme": None, "authority": None, "path": None, "status": None}
    e = exchange(
        "dns 12.1 | tcp 18.3 | tls 38.2~1.5g | - 0.6 | send 0.2~0.1g | wait 214.9~5 | transfer 3.1~5",
        outcome=Outcome.UNKNOWN,
        server_name="api.example.com",
        request_bytes=None,
        **unread,
    )
    return analysis(
        e,
        source=source(evidence_level=EvidenceLevel.L2, secrets=Secrets()),
        connections=(
            connection(tls=session(decrypted=False, alpn=None, certificate_bytes=None, server_flight_bytes=3_400)),
        ),
    )


def failures() -> Analysis:
    """One request for each way to end early."""
    none = {"status": None, "response_bytes": None, "protocol": None}
    return analysis(
        exchange(
            "dns 8.0",
            outcome=Outcome.DNS_FAIL,
            outcome_detail="NXDOMAIN from 192.0.2.53",
            **(none | {"connection_id": None}),
        ),
        exchange("dns 8.0 | tcp 17.9", at_ms=100, outcome=Outcome.REFUSED, outcome_detail="RST from server", **none),
        exchange(
            "dns 8.0 | tcp 18.3 | tls 21.0",
            at_ms=200,
            outcome=Outcome.TLS_FAIL,
            outcome_detail="alert handshake_failure from server",
            **none,
        ),
        exchange(
            "tcp 18.3 | tls 38.2 | send 0.2 | wait 90.0",
            at_ms=300,
            outcome=Outcome.RESET,
            outcome_detail="RST from server",
            **none,
        ),
        exchange("tcp 18.3 | tls 38.2 | send 0.2 | wait 5000", at_ms=500, outcome=Outcome.TIMEOUT_READ, **none),
        exchange(
            "tcp 18.3 | tls 38.2 | send 0.2 | wait 90.0 | transfer 1200",
            at_ms=600,
            outcome=Outcome.CLOSED_EARLY,
            outcome_detail="FIN from server",
        ),
    )


def retried() -> Analysis:
    """One call with two attempts and the back-off between them."""
    first = exchange(
        "dns 12.1 | tcp 18.3 | tls 38.2 | send 0.2 | wait 41.0 | transfer 0.1",
        status=503,
        outcome=Outcome.HTTP_ERROR,
        call_id=0,
        attempt=1,
        method="POST",
        path="/v1/chat/completions",
    )
    second = exchange(
        "send 0.2 | wait 214.9 | transfer 3.1",
        at_ms=609.9,
        first_packet=40,
        reused=True,
        ordinal=1,
        call_id=0,
        attempt=2,
        method="POST",
        path="/v1/chat/completions",
    )
    call = Call(
        id=0,
        url="https://api.example.com/v1/chat/completions",
        attempts=(0, 1),
        backoff=(Backoff(ns=ns(500), cause="retry-after", planned_ns=ns(500)),),
        total_ns=ns(828.1),
        outcome="ok",
        policy="article",
    )
    return analysis(first, second, calls=(call,))


def streamed(events: int = 40) -> Analysis:
    """A chat answer of server-sent events every 30 ms with one stall of 400 ms and its catch-up burst."""
    timeline, at = [], T0 + ns(287.4)
    for index in range(events):
        stalled = index == events // 2
        burst = events // 2 < index < events // 2 + 13
        at += 0 if index == 0 else ns(400) if stalled else ns(0.2) if burst else ns(30)
        kind = EventKind.ROLE if index == 0 else EventKind.DONE if index == events - 1 else EventKind.TEXT
        if index == 3:
            kind = EventKind.PING
        timeline.append(
            StreamEvent(
                index=index,
                kind=kind,
                deliverable_at=at,
                seen_at=at - (ns(370) if burst else 0),
                size_bytes=210,
                packet=40 + index,
            )
        )
    text = [event.deliverable_at for event in timeline if event.kind is EventKind.TEXT]
    sent = T0 + ns(69.2)
    timing = StreamTiming(
        api="openai-chat",
        first_byte_ns=ns(215.1),
        first_event_ns=timeline[0].deliverable_at - sent,
        first_token_ns=text[0] - sent,
        first_visible_ns=text[0] - sent,
        last_content_ns=text[-1] - sent,
        logical_end_ns=timeline[-1].deliverable_at - sent,
        events=events,
        token_events=len(text),
        gaps_ns=tuple(later - earlier for earlier, later in itertools.pairwise(text)),
        tokens=events + 12,
        chunks=events - 4,
        events_per_record=round(events / (events - 4), 3),
        burst_factor=1.5,
        stalls=find_stalls(timeline, Surroundings()),
        buffering=buffering(
            timeline, first_event_ns=ns(218.2), end_ns=timeline[-1].deliverable_at - sent, head_with_first_event=False
        ),
        timeline=tuple(timeline),
    )
    transfer = (timeline[-1].deliverable_at - T0 - ns(284.3)) / NS_PER_MS
    return analysis(
        exchange(
            f"dns 12.1 | tcp 18.3 | tls 38.2 | - 0.6 | send 0.2 | wait 214.9 | transfer {transfer}",
            method="POST",
            path="/v1/chat/completions",
            stream=timing,
        )
    )


def distribution(values_ms: Sequence[float]) -> Distribution:
    """Exact order statistics; quantiles that few trials cannot support are None."""
    values = sorted(ns(v) for v in values_ms)
    n = len(values)
    return Distribution(
        n=n,
        min=values[0],
        p50=values[n // 2] if n % 2 else (values[n // 2 - 1] + values[n // 2]) // 2,
        p90=None,
        p95=None,
        p99=None,
        max=values[-1],
        interval_lo=values[1] if n >= 8 else None,
        interval_hi=values[-2] if n >= 8 else None,
    )


def two_arms(n: int = 10) -> Analysis:
    """A probe over both protocols, n trials each, deterministic noise."""
    made: list[Exchange] = []
    for trial in range(n):
        for arm, protocol in (("h1", "http/1.1"), ("h2", "h2")):
            k = len(made)
            wobble = ((k * 37) % 23) / 10
            text = (
                f"dns {11.0 + wobble / 2:.2f} | tcp {18.0 + wobble / 4:.2f} | tls {37.5 + wobble:.2f} | - 0.6"
                f" | send 0.{1 + k % 3} | wait {205 + wobble * 12:.2f} | transfer {2.8 + wobble / 5:.2f}"
            )
            made.append(
                exchange(
                    text,
                    at_ms=k * 600,
                    first_packet=1 + 40 * k,
                    connection_id=k,
                    protocol=protocol,
                    stream_id=1 if protocol == "h2" else None,
                    arm=arm,
                    trial=trial,
                )
            )
    return analysis(
        *made,
        source=source(kind="probe", path=None),
        statistics=tuple(statistics(arm, [e for e in made if e.arm == arm]) for arm in ("h1", "h2")),
        comparisons=(
            Comparison(
                quantity="total",
                arm_a="h1",
                arm_b="h2",
                pairs=n,
                paired=True,
                estimate_ns=ns(-1.0),
                lo_ns=ns(-9.6),
                hi_ns=ns(7.4),
                margin_ns=ns(20),
                verdict="no-difference-that-matters",
                primary=True,
            ),
        ),
    )


def statistics(arm: str, exchanges: Sequence[Exchange]) -> Statistics:
    """The statistics of one arm's exchanges."""
    durations: dict[str, list[float]] = {}
    for e in exchanges:
        for phase in e.phases:
            durations.setdefault(str(phase.name), []).append(phase.duration_ns / NS_PER_MS)
        durations.setdefault("unattributed", []).append(e.unattributed_ns / NS_PER_MS)
        durations.setdefault("total", []).append(e.total_ns / NS_PER_MS)
    outcomes: dict[str, int] = {}
    for e in exchanges:
        outcomes[str(e.outcome)] = outcomes.get(str(e.outcome), 0) + 1
    return Statistics(
        arm=arm,
        n=len(exchanges),
        excluded=(),
        phases={name: distribution(values) for name, values in durations.items()},
        outcomes=outcomes,
    )


def many(n: int = 300) -> Analysis:
    """A capture with hundreds of requests on several connections."""
    made = [
        exchange(
            (COLD if i < 8 else f"send 0.1 | wait {20 + (i * 7919) % 400} | transfer {1 + i % 9}.5"),
            at_ms=i * 31.0,
            first_packet=1 + 10 * i,
            connection_id=i % 8,
            ordinal=i // 8,
            reused=i >= 8,
            path=f"/v1/items/{i}",
        )
        for i in range(n)
    ]
    return analysis(*made)
