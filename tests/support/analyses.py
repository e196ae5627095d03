"""Fabricated analyses, readable at a glance: an exchange is written as the phases it is made of.

    exchange("dns 12.1 | tcp 18.3 | tls 38.2 | - 0.6 | send 0.2 | wait 214.9 | transfer 3.1")

Milliseconds; ``-`` is time that no phase explains; ``wait 214.9~5`` is bounded by ± 5 ms, ``tls 38~2g`` comes from the record grammar.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from netdiag.analysis.buffering import buffering
from netdiag.analysis.stalls import Surroundings, find_stalls
from netdiag.records.analysis import Analysis
from netdiag.records.call import Backoff, Call
from netdiag.records.connection import Connection, Side, Sides, Vantage
from netdiag.records.dns import NameResolution
from netdiag.records.endpoint import Endpoint
from netdiag.records.exchange import Exchange, Outcome
from netdiag.records.lanes import ExchangeLanes, LaneHole, LaneKind, LanePacket, LaneSpan
from netdiag.records.source import EvidenceLevel, Secrets, Source
from netdiag.records.statistics import Comparison, Distribution, Statistics
from netdiag.records.stream import EventKind, StreamEvent, StreamTiming
from netdiag.records.timing import Clock, Method, Phase, PhaseName
from netdiag.records.tls import TlsSession
from netdiag.units import NS_PER_MS

T0 = 1_764_500_000_000_000_000
"""When every fabricated capture begins (ns since the epoch)."""

CLIENT = Endpoint("192.0.2.10", 51532)
SERVER = Endpoint("203.0.113.7", 443)
RESOLVER = Endpoint("192.0.2.53", 53)

_PHASE = re.compile(r"(?P<name>[a-z]+|-) +(?P<ms>[0-9.]+)(?:~(?P<error>[0-9.]+)(?P<grammar>g?))?\Z")


def ns(milliseconds: float) -> int:
    """Nanoseconds of a number of milliseconds."""
    return round(milliseconds * NS_PER_MS)


def phases(
    text: str, *, started_at: int = T0, clock: Clock = Clock.WIRE, first_packet: int | None = 1
) -> tuple[Phase, ...]:
    """The phases of ``"dns 12.1 | tcp 18.3 | …"``, one after the other; each is given two packets."""
    made, at, packet = [], started_at, first_packet
    for part in (p.strip() for p in text.split("|") if p.strip()):
        match = _PHASE.match(part)
        assert match, part
        duration = ns(float(match["ms"]))
        if match["name"] != "-":
            made.append(_phase(match, at, duration, clock, packet))
            packet = packet + 2 if packet is not None else None
        at += duration
    return tuple(made)


def _phase(match: re.Match[str], at: int, duration: int, clock: Clock, packet: int | None) -> Phase:
    error = ns(float(match["error"] or 0))
    method = Method.EXACT if match["error"] is None else Method.GRAMMAR if match["grammar"] else Method.BOUNDED
    return Phase(
        name=PhaseName(match["name"]),
        started_at=at,
        ended_at=at + duration,
        duration_ns=duration,
        clock=clock,
        method=method,
        lo_ns=max(0, duration - error),
        hi_ns=duration + error,
        first_packet=packet,
        last_packet=packet + 1 if packet is not None else None,
    )


def exchange(
    text: str, *, at_ms: float = 0, first_packet: int | None = 1, clock: Clock = Clock.WIRE, **fields: Any
) -> Exchange:
    """An exchange whose phases are ``text`` and which begins ``at_ms`` after the capture did. Any field may be given."""
    started_at = T0 + ns(at_ms)
    made = phases(text, started_at=started_at, clock=clock, first_packet=first_packet)
    total = sum(ns(float(re.findall(r"[0-9.]+", part)[0])) for part in text.split("|") if part.strip())
    by_name = {phase.name: phase for phase in made}
    wait = by_name.get(PhaseName.WAIT)
    path = ns(18.3)
    defaults: dict[str, Any] = {
        "id": 0,
        "connection_id": 0,
        "protocol": "http/1.1",
        "method": "GET",
        "scheme": "https",
        "authority": "api.example.com",
        "path": "/v1/models",
        "status": 200,
        "outcome": Outcome.OK,
        "response_bytes": 12_400,
        "request_bytes": 312,
        "wait_path_ns": path if wait and wait.duration_ns > path else None,
        "wait_think_ns": wait.duration_ns - path if wait and wait.duration_ns > path else None,
        "loss_ns": 0,
        "window_ns": 0,
    }
    return Exchange(
        started_at=started_at,
        ended_at=started_at + total,
        total_ns=total,
        unattributed_ns=total - sum(phase.duration_ns for phase in made),
        phases=made,
        **(defaults | fields),
    )


def connection(id: int = 0, *, tls: TlsSession | None = None, **fields: Any) -> Connection:
    """A TLS 1.3 connection of one client to one server with an RTT of 18.3 ms."""
    defaults: dict[str, Any] = {
        "transport": "tcp",
        "client": replace(CLIENT, port=CLIENT.port + id),
        "server": SERVER,
        "client_known_by": "syn",
        "first_at": T0,
        "last_at": T0 + ns(300),
        "first_packet": 3,
        "last_packet": 30,
        "syn_at": T0 + ns(12.1),
        "syn_packet": 3,
        "syn_ack_at": T0 + ns(30.4),
        "syn_ack_packet": 4,
        "handshake_rtt_ns": ns(18.3),
        "min_rtt_ns": ns(18.3),
        "vantage": Vantage.CLIENT,
        "complete": True,
        "closed_by": "client",
        "close_reason": "fin",
        "closed_at": T0 + ns(300),
        "sides": Sides(client=Side(packets=14, payload_bytes=900), server=Side(packets=16, payload_bytes=15_800)),
        "http_version": "http/1.1",
        "tls": tls or session(),
    }
    return Connection(id=id, **(defaults | fields))


def session(**fields: Any) -> TlsSession:
    """A full TLS 1.3 handshake with keys."""
    defaults: dict[str, Any] = {
        "version": "TLSv1.3",
        "cipher_suite": "TLS_AES_128_GCM_SHA256",
        "group": "X25519MLKEM768",
        "sni": "api.example.com",
        "alpn_offered": ("h2", "http/1.1"),
        "alpn": "http/1.1",
        "client_hello_at": T0 + ns(30.4),
        "client_hello_packet": 6,
        "server_hello_at": T0 + ns(50),
        "server_hello_packet": 9,
        "finished_at": T0 + ns(68.6),
        "finished_method": "exact",
        "resumed": False,
        "certificate_bytes": 3_100,
        "round_trips": 1,
        "decrypted": True,
    }
    return TlsSession(**(defaults | fields))


def resolution(**fields: Any) -> NameResolution:
    """One answered A question that led to connection 0."""
    defaults: dict[str, Any] = {
        "name": "api.example.com",
        "type": "A",
        "resolver": RESOLVER,
        "client": replace(CLIENT, port=40_001),
        "transport": "udp",
        "query_at": T0,
        "query_packet": 1,
        "response_at": T0 + ns(12.1),
        "response_packet": 2,
        "duration_ns": ns(12.1),
        "rcode": "NOERROR",
        "addresses": ("203.0.113.7",),
        "ttl_s": 60,
        "connection_id": 0,
    }
    return NameResolution(**(defaults | fields))


def source(**fields: Any) -> Source:
    """A complete pcapng file with keys."""
    defaults: dict[str, Any] = {
        "kind": "file",
        "path": "slow.pcapng",
        "format": "pcapng",
        "packets": 812,
        "link_types": ("ethernet",),
        "first_at": T0,
        "last_at": T0 + ns(5_000),
        "timestamp_resolution_ns": 1_000,
        "dropped_packets": 0,
        "evidence_level": EvidenceLevel.L3,
        "secrets": Secrets(entries=10, used=2),
    }
    return Source(**(defaults | fields))


def analysis(*exchanges: Exchange, **fields: Any) -> Analysis:
    """An analysis of these exchanges; their ids are made their positions, and every connection they name exists."""
    numbered = tuple(replace(e, id=i) for i, e in enumerate(exchanges))
    most = max((e.connection_id for e in numbered if e.connection_id is not None), default=-1)
    defaults: dict[str, Any] = {
        "source": source(),
        "connections": tuple(connection(i) for i in range(most + 1)),
        "resolutions": (resolution(),),
        "exchanges": numbered,
    }
    return Analysis(**(defaults | fields))


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
        source=source(
            evidence_level=EvidenceLevel.L2,
            secrets=Secrets(),
            note="no session keys: requests are told apart by record sizes; give --keylog FILE to read them",
        ),
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


def lanes() -> ExchangeLanes:
    """The request of the sketch with a lost and retransmitted response segment."""
    e = exchange("dns 12.1 | tcp 18.3 | tls 38.2 | - 0.6 | send 0.2 | wait 60.0 | transfer 45.0")
    events = [
        (12.1, "client", LaneKind.SYN, 0),
        (30.4, "server", LaneKind.SYN, 0),
        (30.5, "client", LaneKind.ACK, 0),
        (30.7, "client", LaneKind.DATA, 1448),
        (30.8, "client", LaneKind.DATA, 312),
        (49.2, "server", LaneKind.ACK, 0),
        (49.9, "server", LaneKind.DATA, 1448),
        (50.0, "server", LaneKind.DATA, 1448),
        (50.1, "server", LaneKind.DATA, 740),
        (50.3, "client", LaneKind.ACK, 0),
        (68.6, "client", LaneKind.DATA, 80),
        (69.2, "client", LaneKind.DATA, 220),
        (87.9, "server", LaneKind.DATA, 510),
        (88.0, "server", LaneKind.ACK, 0),
        (129.4, "server", LaneKind.DATA, 1448),
        (129.6, "server", LaneKind.DATA, 1448),
        (130.0, "server", LaneKind.DATA, 1448),
        (130.2, "client", LaneKind.ACK, 0),
        (130.4, "client", LaneKind.ACK, 0),
        (130.5, "server", LaneKind.DATA, 1448),
        (174.0, "server", LaneKind.RETRANSMISSION, 1448),
        (174.2, "server", LaneKind.DATA, 903),
        (174.4, "client", LaneKind.ACK, 0),
    ]
    packets = tuple(
        LanePacket(number=i + 3, at=T0 + ns(at), side=side, kind=kind, payload_bytes=size)
        for i, (at, side, kind, size) in enumerate(events)
    )

    def span(
        side: str, label: str, seen: float, whole: float | None, size: int, first: int, last: int, own: bool = True
    ) -> LaneSpan:
        return LaneSpan(
            side=side,
            label=label,
            seen_at=T0 + ns(seen),
            deliverable_at=None if whole is None else T0 + ns(whole),
            size_bytes=size,
            first_packet=first,
            last_packet=last,
            of_this_exchange=own,
        )

    records = (
        span("client", "ClientHello", 30.7, 30.8, 1755, 6, 7),
        span("server", "ServerHello", 49.9, 49.9, 1210, 9, 9),
        span("server", "Certificate …", 49.9, 50.1, 2400, 9, 11),
        span("client", "Finished", 68.6, 68.6, 74, 13, 13),
        span("client", "application data", 69.2, 69.2, 215, 14, 14),
        span("server", "NewSessionTicket", 87.9, 87.9, 505, 15, 15, own=False),
        span("server", "application data", 129.4, 174.0, 4200, 17, 23),
        span("server", "application data", 130.5, 174.2, 2351, 22, 24),
    )
    messages = (
        span("client", "request head", 69.2, 69.2, 190, 14, 14),
        span("server", "response head", 129.4, 129.4, 240, 17, 17),
        span("server", "response body", 129.4, 174.2, 6200, 17, 24),
    )
    holes = (LaneHole(side="server", from_at=T0 + ns(130.0), until_at=T0 + ns(174.0), size_bytes=1448),)
    return ExchangeLanes(
        exchange=e, connection=connection(), packets=packets, records=records, messages=messages, holes=holes
    )
