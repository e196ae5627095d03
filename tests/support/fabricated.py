"""Fabricated analyses, readable at a glance: an exchange is written as the phases it is made of.

    exchange("dns 12.1 | tcp 18.3 | tls 38.2 | - 0.6 | send 0.2 | wait 214.9 | transfer 3.1")

Milliseconds; ``-`` is time that no phase explains; ``wait 214.9~5`` is bounded by ± 5 ms, ``tls 38~2g`` comes from the record grammar.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from netdiag.records.analysis import Analysis
from netdiag.records.connection import Connection, Side, Sides, Vantage
from netdiag.records.dns import NameResolution
from netdiag.records.endpoint import Endpoint
from netdiag.records.exchange import Exchange, Outcome
from netdiag.records.source import EvidenceLevel, Secrets, Source
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
